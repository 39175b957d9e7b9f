"""Recording that somebody looked, and showing who is about to (DESIGN sections 3 and 9)."""

import hashlib
from dataclasses import dataclass

from django.contrib.auth.models import User

from queue_app.models import Investigation
from queue_app.policy.errors import SnackOpsError, UnknownJob, gettext_noop
from queue_app.policy.filters import Filter, from_canonical
from queue_app.policy.notes import check_comment, check_note
from queue_app.policy.orders import check_id
from queue_app.policy.refusals import shown
from queue_app.reads import coverage, dead
from queue_app.reads.conditions import Group
from queue_app.reads.looks import PRESENT_MS, present
from queue_app.services import people
from queue_app.services.asking import recorded
from queue_app.services.people import Actor
from queue_app.services.reading import ONCE_IN_MS
from queue_app.store import chain, database, investigations, jobs

SCOPES = ("job", "group", "filter")
FINDINGS = tuple(Investigation.Finding.values)


class InvalidLook(SnackOpsError, ValueError):
    """An investigation that cannot be meant; `field` names what is wrong."""

    def __init__(self, field: str, template: str, **values: object) -> None:
        super().__init__(template, **values)
        self.field = field


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was written: the investigation's id, how many orders it covered, and the groups it counts for."""

    id: int
    count: int
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class _Scope:
    """What is looked at, checked: its canonical filter ('' for a job) and its name in the audit."""

    kind: str
    target: str
    job_id: str = ""
    filter: Filter | None = None
    group: Group | None = None


@database.retried
def record(
    user: User,
    scope: str,
    note: str,
    finding: str,
    *,
    comment: str = "",
    job_id: str | None = None,
    group: Group | None = None,
    filter: Filter | None = None,  # noqa: A002
    as_of_ms: int | None = None,
    channel: str = "console",
    proof: str = "session",
) -> Recorded:
    """Write an investigation with its audit event, in one transaction; the event holds the comment as a digest only.

    `as_of_ms` is the instant of the page that the person saw: what died later is not covered (None: all until now).
    Raises InvalidNote, InvalidLook, InvalidOrder or FilterError before any query; NotAllowed (recorded); UnknownJob.
    """
    check_note(note)
    comment = check_comment(comment)
    if finding not in FINDINGS:
        raise InvalidLook("finding", gettext_noop("There is no finding %(value)s."), value=shown(finding))
    if as_of_ms is not None and type(as_of_ms) is not int:
        raise InvalidLook("as_of", gettext_noop("The instant must be a whole number of milliseconds."))
    wanted = _scope(scope, job_id, group, filter)
    with recorded(user, "investigate", wanted.target, channel=channel, proof=proof), database.write():
        return _write(people.actor_of(user, channel=channel, proof=proof), wanted, note, finding, comment, as_of_ms)


def _scope(scope: str, job_id: str | None, group: Group | None, filter: Filter | None) -> _Scope:  # noqa: A002
    given = {name for name, value in (("job", job_id), ("group", group), ("filter", filter)) if value is not None}
    if scope not in SCOPES or given != {scope}:
        raise InvalidLook("scope", gettext_noop("An investigation is of one order, one cause or one filter."))
    if scope == "job":
        return _Scope("job", f"job:{check_id(job_id)}", job_id=str(job_id))
    if group is not None:
        queue, reason, code = group
        wanted = from_canonical(Filter(queue=queue, reason=reason, code=code).canonical())
        return _Scope("group", f"group:{queue}/{reason}/{code}", filter=wanted, group=group)
    wanted = from_canonical((filter or Filter()).canonical())
    return _Scope("filter", f"filter:{wanted.digest()}", filter=wanted)


def _write(actor: Actor, scope: _Scope, note: str, finding: str, comment: str, as_of_ms: int | None) -> Recorded:
    people.require(actor, "investigate")
    now = database.now_ms()
    # One millisecond more than now, so that what died in this very one is covered, as in a list that is opened now.
    as_of = now + 1 if as_of_ms is None else min(as_of_ms, now + 1)
    count, groups = _covered(scope, as_of)
    written = investigations.add(
        at_ms=now,
        by=actor.id,
        by_name=actor.name,
        scope=scope.kind,
        job_id=scope.job_id,
        selection=scope.filter.canonical() if scope.kind == "filter" and scope.filter else "",
        as_of_ms=as_of,
        count=count,
        note=note,
        finding=finding,
        comment=comment,
        groups=groups,
    )
    event = actor.event(
        "investigate",
        scope.target,
        now,
        note=note,
        investigation=written,
        finding=finding,
        as_of_ms=as_of,
        count=count,
        groups=len(groups),
        comment_sha256=hashlib.sha256(comment.encode()).hexdigest() if comment else "",
    )
    chain.append([event])
    return Recorded(written, count, tuple(groups))


def _covered(scope: _Scope, as_of_ms: int) -> tuple[int, list[Group]]:
    if scope.filter is None:
        if jobs.read(scope.job_id) is None:
            raise UnknownJob(gettext_noop("No order has the id %(job)s."), job=scope.job_id)
        return 1, []
    count = dead.count(scope.filter, as_of_ms).n
    if scope.group is None:
        return count, coverage.covered(scope.filter, as_of_ms)
    if not coverage.was_ever(scope.group):
        raise InvalidLook("group", gettext_noop("No order ever stopped for this cause."))
    return count, [scope.group]


@database.retried
def seen(user: User, group: Group, *, channel: str = "console", proof: str = "session") -> tuple[str, ...]:
    """Say that this person has the form of a group open, and name the others who have it open within the last minute.

    A sign of presence is no record: it leaves no audit event and is forgotten. A refused one is, once an hour, for an open
    form says it again by itself. Raises FilterError before any query, NotAllowed (recorded).
    """
    queue, reason, code = group
    from_canonical(Filter(queue=queue, reason=reason, code=code).canonical())
    refusal = recorded(
        user, "investigate", f"group:{queue}/{reason}/{code}", channel=channel, proof=proof, once_in_ms=ONCE_IN_MS
    )
    with refusal, database.write():
        actor = people.actor_of(user, channel=channel, proof=proof)
        people.require(actor, "investigate")
        now = database.now_ms()
        investigations.forget_presence(now - PRESENT_MS)
        investigations.be_present(actor.id, group, now)
        return present(now, except_user=actor.id).get(group, ())
