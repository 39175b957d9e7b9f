"""Investigations: what they cover, what the figures then say, who may, and what the record keeps."""

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext

from queue_app.models import AuditEvent, InvestigatedGroup, Investigation, Presence
from queue_app.policy.errors import InvalidNote, NotAllowed, UnknownJob
from queue_app.policy.filters import Filter, FilterError
from queue_app.policy.windows import HOUR_MS
from queue_app.reads import dead
from queue_app.reads.coverage import covered
from queue_app.reads.figures import figures
from queue_app.reads.groups import group as group_figures
from queue_app.reads.life import life
from queue_app.reads.looks import looks, present
from queue_app.reads.quarantine import PageRequest, page
from queue_app.services import queue
from queue_app.services.looks import InvalidLook, record, seen
from queue_app.store import chain
from tests.conftest import START_MS, Clock
from tests.reads.stories import declare, die, redrive

REFUSED = ("snacks", "permanent", "http_422")
GONE = ("snacks", "permanent", "http_410")
JUICE = ("drinks", "permanent", "http_422")
NOT_LOOKED = Filter(looked=False)
LOOKED = Filter(looked=True)


@pytest.fixture
def causes(clock: Clock, db: None) -> Clock:
    """Three groups: two orders refused, two gone, one in another queue; a second apart."""
    declare("drinks")
    die(clock, ["r1", "r2"])
    die(clock, ["g1", "g2"], code="http_410")
    die(clock, ["j1"], at="drinks")
    return clock


def ids(wanted: Filter, clock: Clock) -> list[str]:
    return [row.id for row in dead.chunk(wanted, clock.now + 1, None, 99)]


def event() -> Any:
    return AuditEvent.objects.latest("seq")


def test_a_look_at_a_group_covers_what_died_before_and_counts_what_died_since(causes: Clock, operator: User) -> None:
    done = record(operator, "group", "INC-7", "cause_found", group=REFUSED)
    assert (done.count, done.groups) == (2, (REFUSED,))
    causes.advance(60_000)
    die(causes, ["r3"])
    found = group_figures(*REFUSED, causes.now)
    assert found is not None
    assert found.look is not None
    assert (found.look.by_name, found.look.note, found.look.finding, found.look.count) == (
        "oda",
        "INC-7",
        "cause_found",
        2,
    )
    assert (found.n, found.since_look, found.since_look_ms) == (3, 1, causes.now - 1_000)
    assert ids(found.since_filter, causes) == ["r3"]
    assert ids(replace(LOOKED, queue="snacks"), causes) == ["r1", "r2"]
    assert ids(NOT_LOOKED, causes) == ["g1", "g2", "j1", "r3"]
    numbers = figures(causes.now)
    assert (numbers.since_look, numbers.unlooked) == (1, 4)
    assert numbers.look == found.look


def test_died_since_is_right_over_hours(causes: Clock, operator: User) -> None:
    record(operator, "group", "INC-7", "looking", group=REFUSED)
    for n in range(5):
        causes.advance(HOUR_MS // 2)
        die(causes, [f"x{n}"])
    found = group_figures(*REFUSED, causes.now)
    assert found is not None
    assert found.since_look == 5 == len(ids(found.since_filter, causes)) == figures(causes.now).since_look


def test_a_look_at_one_order_covers_that_order_only(causes: Clock, operator: User) -> None:
    assert record(operator, "job", "INC-7", "looking", job_id="r1").groups == ()
    assert ids(LOOKED, causes) == ["r1"]
    rows = page(Filter(), PageRequest(), causes.now).rows
    assert [row.job.id for row in rows if row.looked] == ["r1"]
    found = life("r1", causes.now)
    assert found is not None
    assert (found.looked, found.steps[-1].kind, found.steps[-1].note) == (True, "investigated", "INC-7")


def test_a_look_survives_redrives_and_a_new_death_is_not_covered(
    causes: Clock, operator: User, team_lead: User
) -> None:
    record(operator, "group", "INC-7", "fixed", comment="見た", group=REFUSED)
    causes.advance(1_000)
    redrive("r1", team_lead)
    causes.advance(1_000)
    (lease,) = queue.claim("worker-1")
    queue.finish("r1", lease.token, "permanent", code="http_422")
    found = life("r1", causes.now)
    assert found is not None
    assert [step.kind for step in found.steps].count("investigated") == 1
    assert not found.looked
    assert ids(replace(LOOKED, code="http_422", queue="snacks"), causes) == ["r2"]


def test_a_look_at_the_group_while_an_order_was_out_of_it_is_not_in_its_life(
    causes: Clock, operator: User, team_lead: User
) -> None:
    redrive("r1", team_lead)
    causes.advance(1_000)
    record(operator, "group", "OUT-1", "looking", group=REFUSED)
    causes.advance(1_000)
    (lease,) = queue.claim("worker-1")
    queue.finish("r1", lease.token, "permanent", code="http_422")
    causes.advance(1_000)
    redrive("r1", team_lead)
    (lease,) = queue.claim("worker-1")
    queue.finish("r1", lease.token, "permanent", code="http_410")
    causes.advance(1_000)
    record(operator, "group", "OUT-2", "looking", group=REFUSED)
    record(operator, "group", "IN-1", "looking", group=GONE)
    found = life("r1", causes.now)
    assert found is not None
    assert [step.note for step in found.steps if step.kind == "investigated"] == ["IN-1"]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Filter(), [JUICE, GONE, REFUSED]),
        (Filter(queue="snacks"), [GONE, REFUSED]),
        (Filter(code="http_422"), [JUICE, REFUSED]),
        (Filter(died_from_ms=START_MS + 2_000), [JUICE, GONE]),
        (Filter(died_from_ms=START_MS + 1_000), [JUICE, GONE]),
        (Filter(died_to_ms=START_MS + 3_000), [REFUSED]),
        (Filter(died_to_ms=START_MS + 3_001), [GONE, REFUSED]),
        (Filter(attempts_min=1), [JUICE, GONE, REFUSED]),
        (Filter(attempts_min=2), []),
        (Filter(redriven=False, queue="snacks"), [GONE, REFUSED]),
        (Filter(id_prefix="r"), []),
        (Filter(queue="tea"), []),
    ],
    ids=lambda value: value.canonical() if isinstance(value, Filter) else None,
)
def test_a_look_at_a_filter_counts_for_the_groups_it_covers_whole(
    causes: Clock, operator: User, wanted: Filter, expected: list[tuple[str, str, str]]
) -> None:
    as_of_ms = causes.now + 1
    assert covered(wanted, as_of_ms) == expected
    done = record(operator, "filter", "INC-7", "looking", filter=wanted, as_of_ms=as_of_ms)
    assert list(done.groups) == expected
    assert done.count == len(ids(wanted, causes))
    stored = looks().rows[0]
    assert (stored.filter, stored.groups, stored.look.count) == (wanted, done.groups, done.count)


def test_what_died_after_the_page_was_drawn_is_not_covered(causes: Clock, operator: User) -> None:
    as_of_ms = causes.now
    die(causes, ["r9"])
    done = record(operator, "filter", "INC-7", "looking", filter=Filter(), as_of_ms=as_of_ms)
    assert (done.count, set(done.groups)) == (5, {REFUSED, GONE, JUICE})
    assert ids(NOT_LOOKED, causes) == ["r9"]


def test_a_group_of_which_one_order_is_left_out_is_not_covered(causes: Clock, team_lead: User) -> None:
    redrive("r1", team_lead)
    causes.advance(1_000)
    (lease,) = queue.claim("worker-1")
    queue.finish("r1", lease.token, "permanent", code="http_422")
    assert covered(Filter(redriven=False), causes.now + 1) == [JUICE, GONE]


def test_the_event_holds_the_comment_as_a_digest_only(causes: Clock, operator: User) -> None:
    record(
        operator,
        "group",
        "INC-7",
        "looking",
        group=REFUSED,
        comment="the receiver was moved\r\nsee notes",
        channel="cli",
    )
    row = event()
    assert (row.action, row.target, row.note, row.source) == (
        "investigate",
        "group:snacks/permanent/http_422",
        "INC-7",
        "cli",
    )
    detail = json.loads(row.detail)
    assert detail["comment_sha256"] == hashlib.sha256(b"the receiver was moved\nsee notes").hexdigest()
    assert "moved" not in row.detail
    assert Investigation.objects.get().comment == "the receiver was moved\nsee notes"


def test_an_auditor_may_not_and_the_attempt_is_kept(causes: Clock, auditor: User) -> None:
    with pytest.raises(NotAllowed):
        record(auditor, "group", "INC-7", "looking", group=REFUSED)
    assert Investigation.objects.count() == 0
    assert (event().action, event().name, json.loads(event().detail)["tried"]) == ("refused", "ada", "investigate")
    with pytest.raises(NotAllowed):
        seen(auditor, REFUSED)
    assert Presence.objects.count() == 0


def test_without_its_event_nothing_is_written(causes: Clock, operator: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise DatabaseError

    monkeypatch.setattr(chain, "append", fail)
    with pytest.raises(DatabaseError):
        record(operator, "group", "INC-7", "looking", group=REFUSED)
    assert Investigation.objects.count() == InvestigatedGroup.objects.count() == 0


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"note": ""}, InvalidNote),
        ({"note": "two words"}, InvalidNote),
        ({"comment": "a\0b"}, InvalidNote),
        ({"comment": "x" * 2_001}, InvalidNote),
        ({"finding": "done"}, InvalidLook),
        ({"scope": "queue"}, InvalidLook),
        ({"scope": "job"}, InvalidLook),
        ({"job_id": "r1"}, InvalidLook),
        ({"as_of_ms": 1.5}, InvalidLook),
        ({"group": ("snacks", "tired", "")}, FilterError),
        ({"group": ("SNACKS", "permanent", "")}, FilterError),
    ],
)
def test_what_cannot_be_meant_is_refused_before_any_query(operator: User, given: dict[str, Any], error: type) -> None:
    values: dict[str, Any] = {"scope": "group", "note": "INC-7", "finding": "looking", "group": REFUSED} | given
    with CaptureQueriesContext(connection) as asked, pytest.raises(error):
        record(operator, **values)
    assert len(asked) == 0


def test_unknown_orders_and_causes_are_said(causes: Clock, operator: User) -> None:
    with pytest.raises(UnknownJob):
        record(operator, "job", "INC-7", "looking", job_id="nobody")
    with pytest.raises(InvalidLook, match="ever stopped"):
        record(operator, "group", "INC-7", "looking", group=("snacks", "deadline", ""))


def test_two_people_at_one_group_see_each_other(causes: Clock, operator: User, team_lead: User) -> None:
    assert seen(operator, REFUSED) == ()
    assert seen(team_lead, REFUSED) == ("oda",)
    assert seen(operator, REFUSED) == ("tom",)
    assert seen(operator, GONE) == ()
    assert present(causes.now) == {REFUSED: ("oda", "tom"), GONE: ("oda",)}
    causes.advance(60_000)
    assert seen(operator, REFUSED) == ()
    assert AuditEvent.objects.count() == 0


def test_all_looks_are_listed_page_by_page_also_of_one_group(causes: Clock, operator: User) -> None:
    for n in range(5):
        record(operator, "group", f"INC-{n}", "looking", group=(REFUSED, GONE)[n % 2])
    first = looks(size=2)
    assert [row.look.note for row in first.rows] == ["INC-4", "INC-3"]
    assert [row.look.note for row in looks(before=first.before, size=3).rows] == ["INC-2", "INC-1", "INC-0"]
    assert looks(before=first.before, size=3).before is None
    assert [row.look.note for row in looks(group=GONE).rows] == ["INC-3", "INC-1"]
    with CaptureQueriesContext(connection) as asked:
        looks()
    assert len(asked) == 2
