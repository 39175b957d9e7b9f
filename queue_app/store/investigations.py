"""Writing down that somebody looked, and that somebody is about to."""

from collections.abc import Iterable

from queue_app.models import InvestigatedGroup, Investigation, Presence


def add(
    *,
    at_ms: int,
    by: int,
    by_name: str,
    scope: str,
    job_id: str,
    selection: str,
    as_of_ms: int,
    count: int,
    note: str,
    finding: str,
    comment: str,
    groups: Iterable[tuple[str, str, str]],
) -> int:
    """Insert an investigation with the groups (queue, reason, code) that it counts for; returns its id."""
    row = Investigation.objects.create(
        at_ms=at_ms,
        by_id=by,
        by_name=by_name,
        scope=scope,
        job_id=job_id,
        selection=selection,
        as_of_ms=as_of_ms,
        count=count,
        note=note,
        finding=finding,
        comment=comment,
    )
    InvestigatedGroup.objects.bulk_create(
        InvestigatedGroup(investigation=row, queue=queue, reason=reason, code=code) for queue, reason, code in groups
    )
    return int(row.pk)


def be_present(user: int, group: tuple[str, str, str], now_ms: int) -> None:
    """Say that this person has the group's form open."""
    queue, reason, code = group
    Presence.objects.update_or_create(
        user_id=user, queue=queue, reason=reason, code=code, defaults={"seen_at_ms": now_ms}
    )


def forget_presence(before_ms: int) -> None:
    """Drop signs of presence older than an instant."""
    Presence.objects.filter(seen_at_ms__lt=before_ms).delete()
