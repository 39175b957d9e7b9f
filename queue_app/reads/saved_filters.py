"""The filters that a person may choose by name."""

from dataclasses import dataclass

from queue_app.models import SavedFilter
from queue_app.policy.filters import Filter, FilterError, from_canonical


@dataclass(frozen=True, slots=True)
class NamedFilter:
    """`shared`: for all. `filter` None: stored by another version and not readable by this one."""

    id: int
    name: str
    shared: bool
    made_by: str
    filter: Filter | None


def named_filters(user_id: int) -> list[NamedFilter]:
    """A person's own filters, then everybody's, by name. One query."""
    rows = SavedFilter.objects.filter(owner_id=user_id) | SavedFilter.objects.filter(owner_id=None)
    found = [
        NamedFilter(pk, name, owner is None, made_by, _readable(query))
        for pk, name, owner, made_by, query in rows.values_list("id", "name", "owner_id", "made_by__username", "query")
    ]
    return sorted(found, key=lambda named: (named.shared, named.name))


def _readable(query: str) -> Filter | None:
    try:
        return from_canonical(query)
    except FilterError:
        return None
