"""Every investigation: the whole receipt, the whole rows, and the whole event, which keeps a comment as its digest only."""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from queue_app.models import InvestigatedGroup, Investigation
from queue_app.policy.errors import NotAllowed, UnknownJob
from queue_app.policy.filters import Filter, FilterError
from queue_app.services import looks
from queue_app.services.looks import InvalidLook, Recorded
from tests.redrive import story
from tests.services.told import DEACTIVATED, WAYS, WORKERS, Case, Refused, World, by_way, check

pytestmark = pytest.mark.django_db

CAUSE = ("snacks", "permanent", "http_503")
OTHER = ("snacks", "permanent", "http_422")
WANTED, PART = Filter(queue="snacks"), Filter(queue="snacks", id_prefix="o")


def _five_of_two_causes(world: World) -> None:
    story.die(3)
    world.more["seen_ms"] = world.clock.advance(1_000)
    story.die(2, first=4, code="http_422")
    world.clock.advance(1_000)


def look(who: str, scope: str, **more: Any) -> Callable[[World], object]:
    more = {"note": "INC-1", "finding": "cause_found"} | more
    return lambda w: looks.record(
        getattr(w, who), scope, **{k: v(w) if callable(v) else v for k, v in more.items()}, **w.how
    )


def looked(count: int, *groups: Any) -> Callable[[World], Recorded]:
    return lambda _w: Recorded(Investigation.objects.latest("pk").pk, count, tuple(groups))


def looked_event(target: str, count: int, groups: int, *, comment: str = "", seen: bool = False) -> Any:
    return lambda w: [
        w.event(
            w.oda, "investigate", target, note="INC-1", investigation=Investigation.objects.latest("pk").pk,
            finding="cause_found", as_of_ms=w.more["seen_ms"] if seen else w.clock.now + 1, count=count, groups=groups,
            comment_sha256=hashlib.sha256(comment.encode()).hexdigest() if comment else "",
        )
    ]  # fmt: skip


GROUP, DIGEST = "group:snacks/permanent/http_503", f"filter:{WANTED.digest()}"
SCOPE = Refused(InvalidLook, "An investigation is of one order, one cause or one filter.", "scope")
LOOKS = {
    "a job": Case(look("oda", "job", job_id="o1"), looked(1), looked_event("job:o1", 1, 0)),
    "a comment": Case(look("oda", "job", job_id="o1", comment="the oven"), looked(1),
                      looked_event("job:o1", 1, 0, comment="the oven")),
    "a cause": Case(look("oda", "group", group=CAUSE), looked(3, CAUSE), looked_event(GROUP, 3, 1)),
    "a filter": Case(look("oda", "filter", filter=WANTED), looked(5, OTHER, CAUSE), looked_event(DIGEST, 5, 2)),
    "a part of causes": Case(look("oda", "filter", filter=PART), looked(5),
                             looked_event(f"filter:{PART.digest()}", 5, 0)),
    "as it was seen": Case(look("oda", "filter", filter=WANTED, as_of_ms=lambda w: w.more["seen_ms"]),
                           looked(3, CAUSE), looked_event(DIGEST, 3, 1, seen=True)),
    "of the future": Case(look("oda", "filter", filter=WANTED, as_of_ms=2**60), looked(5, OTHER, CAUSE),
                          looked_event(DIGEST, 5, 2)),
    "an auditor": Case(look("ada", "group", group=CAUSE), lambda _w: Refused(NotAllowed, WORKERS),
                       lambda w: w.refused(w.ada, "investigate", GROUP, WORKERS)),
    "somebody gone": Case(lambda w: looks.record(w.gone(), "job", "INC-1", "fixed", job_id="o1", **w.how),
                          lambda _w: Refused(NotAllowed, DEACTIVATED),
                          lambda w: w.refused(w.tom, "investigate", "job:o1", DEACTIVATED)),
    "an unknown job": Case(look("oda", "job", job_id="zz"), lambda _w: Refused(UnknownJob, "No order has the id zz.")),
    "an unknown cause": Case(look("oda", "group", group=("snacks", "deadline", "")),
                             lambda _w: Refused(InvalidLook, "No order ever stopped for this cause.", "group")),
    "no finding": Case(look("oda", "job", job_id="o1", finding="x"),
                       lambda _w: Refused(InvalidLook, "There is no finding 'x'.", "finding")),
    "half an instant": Case(look("oda", "job", job_id="o1", as_of_ms=1.5),
                            lambda _w: Refused(InvalidLook, "The instant must be a whole number of milliseconds.", "as_of")),
    "no scope": Case(look("oda", "all"), lambda _w: SCOPE),
    "another scope": Case(look("oda", "job", filter=WANTED), lambda _w: SCOPE),
    "two scopes": Case(look("oda", "job", job_id="o1", group=CAUSE), lambda _w: SCOPE),
    "no thing": Case(look("oda", "filter"), lambda _w: SCOPE),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("case", LOOKS.values(), ids=list(LOOKS))
def test_an_investigation(world: World, way: dict[str, str], case: Case) -> None:
    _five_of_two_causes(world)
    check(case, by_way(world, way))


@pytest.mark.parametrize(
    ("given", "kept", "groups"),
    [
        ({"scope": "job", "job_id": "o1"}, ("job", "o1", "", 1), []),
        ({"scope": "group", "group": CAUSE}, ("group", "", "", 3), [CAUSE]),
        ({"scope": "filter", "filter": WANTED}, ("filter", "", WANTED.canonical(), 5), [OTHER, CAUSE]),
    ],
)
def test_what_is_kept_of_an_investigation(
    world: World, given: dict[str, Any], kept: tuple[object, ...], groups: list[object]
) -> None:
    _five_of_two_causes(world)
    written = looks.record(world.oda, note="INC-1", finding="fixed", comment="the oven", **given)
    scope, job_id, selection, count = kept
    assert Investigation.objects.values().get() == {
        "id": written.id, "at_ms": world.clock.now, "by_id": world.oda.pk, "by_name": "oda", "scope": scope,
        "job_id": job_id, "selection": selection, "as_of_ms": world.clock.now + 1, "count": count, "note": "INC-1",
        "finding": "fixed", "comment": "the oven",
    }  # fmt: skip
    found = InvestigatedGroup.objects.filter(investigation=written.id).order_by("code")
    assert list(found.values_list("queue", "reason", "code")) == groups


def test_who_has_a_form_open_is_named_for_a_minute_and_leaves_no_event(world: World) -> None:
    for user, others, later in (("oda", (), 0), ("tom", ("oda",), 59_999), ("oda", ("tom",), 0), ("tom", ("oda",), 1)):
        world.clock.advance(later)
        check(Case(lambda w, u=user: looks.seen(getattr(w, u), CAUSE), lambda _w, o=others: o), world)
    check(Case(lambda w: looks.seen(w.tom, OTHER), lambda _w: ()), world)
    world.clock.advance(60_001)
    check(Case(lambda w: looks.seen(w.oda, CAUSE), lambda _w: ()), world)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_refused_presence_is_told_once_an_hour_for_each_person_and_cause(world: World, way: dict[str, str]) -> None:
    by_way(world, way)
    for who, group, why, later, told in (
        (lambda w: w.ada, CAUSE, WORKERS, 0, True),
        (lambda w: w.ada, CAUSE, WORKERS, 3_599_999, False),
        (lambda w: w.ada, OTHER, WORKERS, 0, True),
        (lambda w: w.gone(), CAUSE, DEACTIVATED, 0, True),
        (lambda w: w.ada, CAUSE, WORKERS, 1, True),
    ):
        world.clock.advance(later)
        events = (
            (lambda w, u=who, g=group, y=why: w.refused(u(w), "investigate", f"group:{'/'.join(g)}", y))
            if told
            else (lambda _w: [])
        )
        refusal = Refused(NotAllowed, why)
        check(Case(lambda w, u=who, g=group: looks.seen(u(w), g, **w.how), lambda _w, r=refusal: r, events), world)


UNREADABLE = Refused(FilterError, "The stored filter cannot be read.")


@pytest.mark.parametrize(
    "group",
    [("Bad Q", "permanent", "x"), ("snacks", "bad", "x"), ("snacks", "permanent", "b d"), ("", "", "")],
    ids=str,
)
def test_what_can_be_no_cause_is_refused_before_anybody_is_asked(world: World, group: tuple[str, str, str]) -> None:
    check(Case(lambda w: looks.seen(w.ada, group), lambda _w: UNREADABLE), world)
    check(Case(look("ada", "group", group=group), lambda _w: UNREADABLE), world)


def test_a_cause_without_a_code_is_a_cause(world: World) -> None:
    story.die(2, code="")
    world.clock.advance(1)
    check(Case(look("oda", "group", group=("snacks", "permanent", "")), looked(2, ("snacks", "permanent", "")),
               lambda w: [w.event(
                   w.oda, "investigate", "group:snacks/permanent/", note="INC-1",
                   investigation=Investigation.objects.latest("pk").pk, finding="cause_found", as_of_ms=w.clock.now + 1,
                   count=2, groups=1, comment_sha256="")]), world)  # fmt: skip
