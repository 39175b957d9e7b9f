"""Pages of the record: each event once, both ways, at a cost that does not depend on what is not shown."""

import pytest
from django.contrib.auth.models import User

from queue_app.models import AuditEvent
from queue_app.policy.audit_filters import AuditFilter
from queue_app.reads import audit, audit_search
from queue_app.store import chain
from queue_app.store.chain import Event

pytestmark = pytest.mark.django_db
DAY_MS = 86_400_000
ALL = AuditFilter()


@pytest.fixture
def record(operator: User, team_lead: User) -> list[AuditEvent]:
    """137 events of two people and the redriver, an hour apart; every third a step, every seventh refused."""
    for n in range(137):
        action = "batch.tick" if n % 3 == 0 else "refused" if n % 7 == 0 else ("plan.ask", "plan.approve")[n % 2]
        actor = None if action == "batch.tick" else (operator.pk, team_lead.pk)[n % 2]
        chain.append([Event(n * 3_600_000, action, f"plan:{n % 5 + 1}", actor=actor, name="x", source="console")])
    return list(AuditEvent.objects.order_by("-seq"))


FILTERS = [
    (ALL, lambda row: row.action != "batch.tick"),
    (AuditFilter(steps=True), lambda _row: True),
    (AuditFilter(refused=True), lambda row: row.action == "refused"),
    (AuditFilter(action="batch.tick"), lambda row: row.action == "batch.tick"),
    (AuditFilter(action="plan.ask", refused=True), lambda _row: False),
    (AuditFilter(who="x", steps=True), lambda row: row.actor is None),
    (AuditFilter(who="oda"), lambda row: row.name and row.actor and row.actor.username == "oda"),
    (
        AuditFilter(who="oda", target="R-2"),
        lambda row: row.actor and row.actor.username == "oda" and "n:2" in row.target,
    ),
    (AuditFilter(target="plan:3", steps=True), lambda row: row.target == "plan:3"),
    (AuditFilter(target="R-3"), lambda row: row.target == "plan:3" and row.action != "batch.tick"),
    (
        AuditFilter(from_ms=DAY_MS, to_ms=3 * DAY_MS, steps=True),
        lambda row: DAY_MS <= row.at_ms < 3 * DAY_MS,
    ),
    (
        AuditFilter(who="tom", action="plan.approve", from_ms=DAY_MS + 1, to_ms=3 * DAY_MS),
        lambda row: row.action == "plan.approve" and row.actor.username == "tom" and DAY_MS < row.at_ms < 3 * DAY_MS,
    ),
]


@pytest.mark.parametrize(("wanted", "matches"), FILTERS, ids=[f"filter {n}" for n in range(len(FILTERS))])
@pytest.mark.parametrize("with_refused", [True, False])
@pytest.mark.parametrize("size", [1, 7, 50, 200])
def test_walking_the_pages_shows_each_matching_event_once_both_ways(
    wanted, matches, with_refused, size, record
) -> None:
    expected = [row.seq for row in record if matches(row) and (with_refused or row.action != "refused")]
    down, before = [], None
    while True:
        page = audit.page(wanted, with_refused=with_refused, before=before, size=size)
        down += [row.seq for row in page.rows]
        if page.older is None:
            break
        before = page.older
    assert down == expected
    up, after = [], 0
    while True:
        page = audit.page(wanted, with_refused=with_refused, after=after, size=size)
        up = [row.seq for row in page.rows] + up
        if page.newer is None:
            break
        after = page.newer
    assert up == expected
    for look in (None, 1 + size, 137):
        assert audit.count(wanted, with_refused=with_refused, upto=137, look=look) == len(expected)
        rows = audit.stretch(wanted, with_refused=with_refused, upto=137, after=0, limit=1_000, look=look)
        assert [row.seq for row in rows] == expected[::-1]


RESTS = {  # of 130 events, 20 to a look
    "all": (AuditFilter(steps=True), lambda _row: True, 6),
    "all but steps": (ALL, lambda row: row.action != "batch.tick", 6),
    "an action": (AuditFilter(action="plan.ask"), lambda row: row.action == "plan.ask", 1),
    "what was refused": (AuditFilter(refused=True), lambda row: row.action == "refused", 0),
    "a target": (AuditFilter(target="R-3", steps=True), lambda row: row.target == "plan:3", 1),
    "a person": (AuditFilter(who="oda"), lambda row: row.actor and row.actor.username == "oda", 2),
    "a program": (AuditFilter(who="x", steps=True), lambda row: row.actor is None, 2),
}


@pytest.mark.parametrize(("wanted", "matches", "rests"), RESTS.values(), ids=list(RESTS))
def test_the_record_is_walked_in_small_looks_with_a_rest_between_by_what_is_rare_in_it(
    wanted, matches, rests, record: list[AuditEvent]
) -> None:
    rested: list[None] = []
    found = {"with_refused": True, "upto": 130, "look": 20, "rest": lambda: rested.append(None)}
    expected = [row.seq for row in reversed(record) if matches(row) and row.seq <= 130]
    assert audit.count(wanted, **found) == len(expected)
    assert len(rested) == rests
    rows = audit.stretch(wanted, after=expected[0], limit=3, **found)
    assert [row.seq for row in rows] == expected[1:4]
    assert len(rested) == rests, "what is found within one look costs no rest"


def test_a_page_and_the_page_before_it_meet(record: list[AuditEvent]) -> None:
    first = audit.page(ALL, with_refused=True, size=10)
    second = audit.page(ALL, with_refused=True, size=10, before=first.older)
    again = audit.page(ALL, with_refused=True, size=10, after=second.newer)
    assert first.newer is None
    assert [row.seq for row in again.rows] == [row.seq for row in first.rows]


def test_a_long_search_stops_and_goes_on_where_it_stopped(
    record: list[AuditEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_search, "SCAN", 10)
    wanted = AuditFilter(target="R-2", action="refused")
    expected = [row.seq for row in record if row.target == "plan:2" and row.action == "refused"]
    found, before, stops = [], None, 0
    while True:
        page = audit.page(wanted, with_refused=True, before=before)
        found += [row.seq for row in page.rows]
        stops += page.searched_to is not None
        if page.older is None:
            break
        before = page.older
    assert found == expected
    assert stops >= 2


def test_a_clock_that_was_set_back_hides_nothing_from_a_filter_by_time(operator: User) -> None:
    steps = [10, 20, 5, 30, 28, 40, 39, 50]  # minutes
    chain.append([Event(minute * 60_000, "plan.ask", "plan:1", actor=operator.pk) for minute in steps])
    for low in range(0, 55, 5):
        for high in range(low + 5, 60, 5):
            wanted = AuditFilter(from_ms=low * 60_000, to_ms=high * 60_000)
            expected = [seq for seq, minute in enumerate(steps, start=1) if low <= minute < high]
            assert [row.seq for row in audit.page(wanted, with_refused=True).rows] == expected[::-1]


def test_the_key_events_of_a_redrive_are_found_without_its_steps(record: list[AuditEvent]) -> None:
    rows = audit.of_target("plan:2", ["plan.ask", "plan.approve"], 5)
    expected = [row.seq for row in reversed(record) if row.target == "plan:2" and row.action.startswith("plan.")]
    assert [row.seq for row in rows] == expected[:5]
    assert audit.of_target("plan:9", ["plan.ask"], 5) == []
