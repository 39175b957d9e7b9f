"""The overview's numbers equal plain SQL after real moves, at a cost that does not grow."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queue_app.policy.answers import effect_possible
from queue_app.policy.figures import Figures, Ratio, Results
from queue_app.policy.filters import Filter
from queue_app.policy.headlines import headline, needs
from queue_app.policy.windows import DAY_MS, HOUR_MS
from queue_app.reads import dead
from queue_app.reads.figures import figures
from queue_app.reads.groups import results_by_batch
from queue_app.services import life_signs, queue
from queue_app.services.leases import record_unknown
from tests.conftest import Clock
from tests.dead_rows import bury
from tests.reads.stories import accept, deliver, die, redrive


def sql(text: str, *values: Any) -> Any:
    """One row, or its one value."""
    with connection.cursor() as cursor:
        cursor.execute(text, values)
        row = cursor.fetchone()
    return row[0] if len(row) == 1 else row


def numbers(clock: Clock) -> Figures:
    return figures(clock.now)


@pytest.mark.django_db
def test_an_empty_installation_has_zeros_and_no_ratios(clock: Clock) -> None:
    found = numbers(clock)
    assert found.states.total == found.unlooked == found.since_look == found.recent == found.late_finishes == 0
    assert found.states.completion.value is None
    assert found.results.success.value is None
    assert (found.oldest, found.look, found.surge, found.last_delivery_ms) == (None, None, None, None)
    assert {window.died for window in found.windows} == {window.still for window in found.windows} == {0}
    assert headline(found).kind == "empty"
    assert needs(found) == []


def test_states_are_those_of_the_table(mixed: Clock) -> None:
    accept(["n1", "n2", "r1"])
    (lease,) = [lease for lease in queue.claim("worker-1", limit=9) if lease.id == "r1"]
    queue.finish("r1", lease.token, "retry", code="http_503")
    states = numbers(mixed).states
    recount = {
        state: sql("SELECT count(*) FROM jobs WHERE state = %s", state)
        for state in ("pending", "leased", "done", "dead")
    }
    assert {"pending": states.pending, "leased": states.leased, "done": states.done, "dead": states.dead} == recount
    assert states.retrying == sql("SELECT count(*) FROM jobs WHERE state = 'pending' AND attempts > 0") == 1
    assert states.total == sum(recount.values())


def test_each_queue_has_its_own(mixed: Clock) -> None:
    for found in numbers(mixed).queues:
        assert found.states.dead == sql("SELECT count(*) FROM jobs WHERE state = 'dead' AND queue = %s", found.name)
        assert found.states.total == sql("SELECT count(*) FROM jobs WHERE queue = %s", found.name)


def test_reasons_and_codes_have_numerator_and_denominator(mixed: Clock) -> None:
    found = numbers(mixed)
    total = sql("SELECT count(*) FROM jobs WHERE state = 'dead'")
    for column, shares in (("reason", found.by_reason), ("code", found.by_code)):
        assert sum(share.part for _, share in shares) == total
        for word, share in shares:
            n = sql(f"SELECT count(*) FROM jobs WHERE state = 'dead' AND {column} = %s", word)
            assert share == Ratio(n, total)


def test_groups_windows_and_list_agree(mixed: Clock) -> None:
    found = numbers(mixed)
    assert sum(group.n for group in found.groups) == found.states.dead
    for group in found.groups:
        assert dead.count(group.filter, mixed.now).n == group.n == len(dead.chunk(group.filter, mixed.now, None, 99))
        assert dead.count(group.since_filter, mixed.now).n == group.since_look
        assert group.recent == _deaths(mixed.now, found.recent_since_ms, (group.queue, group.reason, group.code))
    for window in found.windows:
        assert dead.count(window.filter, mixed.now).n == window.still
        assert window.died == _deaths(mixed.now, window.since_ms or 0)


def _deaths(now: int, since_ms: int, group: tuple[str, str, str] | None = None) -> int:
    """Deaths by their evidence: those dead now, and those that a redrive names."""
    where = " AND queue = %s AND reason = %s AND code = %s" if group else ""
    standing = sql(
        f"SELECT count(*) FROM jobs WHERE state = 'dead' AND changed_at_ms >= %s{where}", since_ms, *(group or ())
    )
    ended = sql(
        "SELECT count(*) FROM redrives AS r WHERE (SELECT max(f.at_ms) FROM failures AS f WHERE f.job_id = r.job_id "
        f"AND f.token <= r.token) >= %s{where}",
        since_ms,
        *(group or ()),
    )
    return standing + ended


def test_in_and_outflow_by_hour_and_minute(mixed: Clock) -> None:
    found = numbers(mixed)
    assert len(found.hours) == 168
    assert sum(hour.died for hour in found.hours) == _deaths(mixed.now, 0)
    assert sum(hour.left for hour in found.hours) == sql("SELECT count(*) FROM redrives") == 2
    assert sum(hour.still for hour in found.hours) == found.states.dead
    assert found.hours[-1].start_ms <= mixed.now < found.hours[-1].start_ms + HOUR_MS
    assert found.day == found.hours[-24:]


def test_the_oldest_and_the_last_delivery(mixed: Clock) -> None:
    accept(["ok1"], at="drinks")
    deliver("ok1", at="drinks")
    done_at = mixed.now
    mixed.advance(4_000)
    found = numbers(mixed)
    assert found.oldest is not None
    assert found.oldest.id == "s0"
    assert found.oldest.since_ms == sql("SELECT min(changed_at_ms) FROM jobs WHERE state = 'dead'")
    assert found.last_delivery_ms == done_at


def test_results_of_redrives_overall_by_group_and_by_batch(clock: Clock, team_lead: User) -> None:
    die(clock, ["a", "b", "c", "d"])
    for job_id in ("a", "b", "c", "d"):
        redrive(job_id, team_lead, batch=7 if job_id < "c" else 8)
    deliver("a")
    for job_id, code in (("b", "http_422"), ("c", "http_410")):
        (lease,) = queue.claim("worker-1")
        queue.finish(job_id, lease.token, "permanent", code=code)
    expected = Results(waiting=1, done=1, dead_same=1, dead_other=1)
    found = numbers(clock)
    assert found.results == expected
    assert found.results.success == Ratio(1, 3)
    assert [group.results for group in found.groups if group.code == "http_422"] == [expected]
    assert results_by_batch([7, 8, 9]) == {7: Results(done=1, dead_same=1), 8: Results(waiting=1, dead_other=1)}
    assert found.results.waiting == sql(
        "SELECT count(*) FROM redrives AS r WHERE NOT EXISTS (SELECT 1 FROM redrive_outcomes AS o "
        "WHERE o.job_id = r.job_id AND o.token = r.token)"
    )


def test_late_finishes_are_counted_each_time(clock: Clock, db: None) -> None:
    accept(["a"])
    (lost,) = queue.claim("worker-1")
    clock.advance(30_000)
    (taken,) = queue.claim("worker-2")
    assert not queue.finish("a", lost.token, "ok")
    assert not queue.finish("a", lost.token, "ok")
    assert queue.finish("a", taken.token, "ok")
    assert numbers(clock).late_finishes == 2


def test_unknown_answers_are_counted_once_each(clock: Clock, db: None) -> None:
    accept(["a", "b", "c"])
    leases = {lease.id: lease for lease in queue.claim("worker-1", limit=2)}
    assert record_unknown("a", leases["a"].token, "bad_json")
    assert (numbers(clock).unknown.leased, numbers(clock).unknown.unproved) == (1, 1)
    clock.advance(29_999)
    assert numbers(clock).unknown.lease_over == 0
    clock.advance(1)
    unknown = numbers(clock).unknown
    assert (unknown.leased, unknown.lease_over, unknown.unproved, unknown.exact) == (2, 2, 1, True)
    assert {need.kind for need in needs(numbers(clock))} >= {"lease_over", "unproved"}


def test_orders_that_may_have_had_their_effect_are_counted_and_listed(mixed: Clock) -> None:
    found = numbers(mixed)
    codes = [row.code for row in dead.chunk(Filter(), mixed.now, None, 99)]
    assert found.unknown.dead == sum(effect_possible(code) for code in codes) > 0
    assert found.unknown.dead == dead.count(Filter(effect=True), mixed.now).n


def test_a_process_is_silent_after_three_beats(clock: Clock, db: None) -> None:
    life_signs.arrive("w1", "worker", "snacks")
    life_signs.arrive("r1", "redriver")
    clock.advance(14_999)
    assert [process.state for process in numbers(clock).processes] == ["alive", "alive"]
    clock.advance(1)
    life_signs.leave("r1")
    found = numbers(clock)
    assert [(process.name, process.state) for process in found.processes] == [("r1", "stopped"), ("w1", "silent")]
    assert [need.kind for need in needs(found)] == ["silent"]


def test_the_number_of_queries_does_not_grow(clock: Clock, team_lead: User) -> None:
    die(clock, ["a", "b"])
    with CaptureQueriesContext(connection) as few:
        numbers(clock)
    bury(600, now_ms=clock.now, over_ms=DAY_MS, groups=[("snacks", "exhausted", f"http_5{n:02}") for n in range(60)])
    redrive("a", team_lead)
    with CaptureQueriesContext(connection) as many:
        found = numbers(clock)
    assert len(found.groups) > 40
    assert len(many) == len(few) <= 17
