"""Filters under a name: a person's own (`owner` a user's id) or everybody's (`owner` None)."""

from queue_app.models import SavedFilter


def keep(name: str, *, owner: int | None, made_by: int, query: str, now_ms: int) -> int:
    """Make or replace the filter of this name; returns its id."""
    row, _ = SavedFilter.objects.update_or_create(
        name=name, owner_id=owner, defaults={"made_by_id": made_by, "query": query, "at_ms": now_ms}
    )
    return int(row.pk)


def count(owner: int | None) -> int:
    """How many filters this owner keeps."""
    return SavedFilter.objects.filter(owner_id=owner).count()


def find(filter_id: int) -> tuple[str, int | None] | None:
    """(name, owner) of a filter, or None."""
    return SavedFilter.objects.filter(pk=filter_id).values_list("name", "owner_id").first()


def exists(name: str, owner: int | None) -> bool:
    """Whether this owner has a filter of this name."""
    return SavedFilter.objects.filter(name=name, owner_id=owner).exists()


def drop(filter_id: int) -> bool:
    """Remove a filter; False when it is gone already."""
    return SavedFilter.objects.filter(pk=filter_id).delete()[0] == 1
