"""The gate of a queue as its workers meet it: one rate for all, and a receiver that fails everything is left alone."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queue_app.models import Gate, Job
from queue_app.policy.attempts import Result
from queue_app.policy.breakers import ASKED, SILENT_MS
from queue_app.policy.buckets import JOB_UJ, capacity_uj
from queue_app.services import leases, queue
from queue_app.store import queues as store
from tests.engine.rows import LEASE, T, declare, put, row, take
from tests.services.gates_of_queues import WAIT, fail, fail_lately, gate, opened, told

pytestmark = pytest.mark.django_db

# --- the rate -------------------------------------------------------------------------------------------------------


def test_without_a_limit_nothing_is_written_and_no_gate_is_made() -> None:
    declare(breaker_after=0)
    put("a-1", "a-2")
    assert len(queue.claim("w1", limit=5, now_ms=T)) == 2
    assert not Gate.objects.exists()


def test_all_workers_together_get_what_the_bucket_holds_and_time_fills_it_again() -> None:
    declare(delivery_rate_mj=4_000)  # the bucket holds one order and a quarter of a second
    put(*(f"a-{n}" for n in range(20)))
    assert [len(queue.claim(owner, limit=9, now_ms=T)) for owner in ("w1", "w2", "w3")] == [2, 0, 0]
    assert [len(queue.claim("w2", limit=9, now_ms=T + ms)) for ms in (249, 250, 499, 500, 60_000)] == [0, 1, 0, 1, 2]


def test_who_waited_for_another_and_looked_at_the_clock_before_gets_no_time_twice() -> None:
    declare(delivery_rate_mj=1_000_000)  # an order each millisecond
    put(*(f"a-{n}" for n in range(300)))
    handed = sum(len(queue.claim("w1", limit=99, now_ms=T + ms)) for _ in range(9) for ms in (5, 0, 5, 3))
    assert handed == 251  # what the bucket held at T + 5


def test_a_clock_that_was_set_back_grants_nothing_and_blocks_nothing() -> None:
    """F36."""
    declare(delivery_rate_mj=4_000)
    put(*(f"a-{n}" for n in range(9)), at=T - 3_600_000)
    assert len(queue.claim("w1", limit=9, now_ms=T)) == 2
    back = [len(queue.claim("w1", limit=9, now_ms=T - 3_600_000 + ms)) for ms in (0, 249, 250, 500)]
    assert back == [0, 0, 1, 1]


def test_a_look_at_an_empty_queue_spends_nothing() -> None:
    declare(delivery_rate_mj=1_000)
    for ms in range(5):
        assert queue.claim("w1", limit=9, now_ms=T + ms) == []
    put("a-1")
    assert len(queue.claim("w1", limit=9, now_ms=T + 5)) == 1


def test_a_new_rate_counts_at_once_and_none_lifts_it() -> None:
    declare(delivery_rate_mj=1)
    put(*(f"a-{n}" for n in range(9)))
    assert len(queue.claim("w1", limit=9, now_ms=T)) == 1
    assert queue.claim("w1", limit=9, now_ms=T + 1_000) == []
    store.set_limits("snacks", {"delivery_rate_mj": 1_000_000})
    assert len(queue.claim("w1", limit=2, now_ms=T + 1_001)) == 2
    store.set_limits("snacks", {"delivery_rate_mj": None})
    assert len(queue.claim("w1", limit=9, now_ms=T + 1_001)) == 6


def test_the_bucket_belongs_to_one_queue() -> None:
    declare(delivery_rate_mj=1)
    declare("drinks", delivery_rate_mj=1)
    put("a-1", "a-2")
    put("d-1", queue="drinks")
    assert [len(queue.claim("w1", queue=name, limit=5, now_ms=T)) for name in ("snacks", "drinks", "snacks")] == [
        1,
        1,
        0,
    ]


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([1_000, 2_500, 20_000]),
    st.lists(st.tuples(st.integers(-400, 900), st.integers(1, 9)), min_size=1, max_size=25),
)
def test_in_no_window_more_is_handed_out_than_the_rate_and_one_bucket(rate: int, claims: list[tuple[int, int]]) -> None:
    Gate.objects.all().delete()
    declare(delivery_rate_mj=rate, breaker_after=0)
    have = Job.objects.count()
    put(*(f"h-{have + n}" for n in range(60)))  # as many as this example may take, whatever the last one left
    now, forward, handed = T, 0, 0
    for span, limit in claims:
        now += span  # a clock that was set back grants nothing
        forward += max(span, 0)
        got = queue.claim("w1", limit=limit, now_ms=now, lease_ms=10**7)
        handed += len(got)
        assert len(got) <= limit
        assert handed * JOB_UJ <= rate * forward + capacity_uj(rate)


# --- the breaker ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "code"), [("retry", "http_503"), ("retry", "timeout_read"), ("unknown", "bad_ack")]
)
def test_a_row_of_failures_opens_it_and_no_attempt_is_spent_while_it_is_open(outcome: str, code: str) -> None:
    declare(breaker_after=3, breaker_wait_ms=WAIT)
    fail_lately()
    fail(1, outcome=outcome, code=code)
    assert gate().breaker == "closed"
    fail(1, outcome=outcome, code=code)
    assert (gate().breaker, gate().probe_at_ms) == ("open", T + WAIT)
    put("x-1")
    for ms in (0, 1, WAIT - 1):
        assert queue.claim("w1", limit=9, now_ms=T + ms) == []
    assert (row("x-1")["attempts"], row("x-1")["token"]) == (0, 0)


@pytest.mark.parametrize(
    ("outcome", "code"), [("permanent", "http_422"), ("retry", "http_429"), ("unknown", "bad_order")]
)
def test_refusals_of_single_orders_open_nothing(outcome: str, code: str) -> None:
    declare(breaker_after=2)
    fail(5, outcome=outcome, code=code)
    assert not Gate.objects.exists()


@pytest.mark.parametrize(("outcome", "code"), [("ok", ""), ("permanent", "http_422")])
def test_any_answer_ends_the_row(outcome: str, code: str) -> None:
    declare(breaker_after=3)
    for lap in range(4):
        fail(1, at=T + lap * SILENT_MS, max_attempts=1)
        fail(1, at=T + (lap + 1) * SILENT_MS - 1, max_attempts=1)
        assert (gate().breaker, gate().failed_in_row) == ("closed", 2)
        fail(1, at=T + (lap + 1) * SILENT_MS - 1, outcome=outcome, code=code)
    assert (gate().breaker, gate().failed_in_row, gate().silent_since_ms) == ("closed", 0, None)


def test_the_tries_of_one_cause_that_fall_together_open_nothing() -> None:
    """Sixty failures in half a second, more than any row of the rule, from a receiver that takes other orders."""
    declare(breaker_after=20)
    put("good-1", "good-2")
    good = queue.claim("w1", limit=2, now_ms=T)
    for ms in range(0, 500, 25):
        fail(3, at=T + ms, max_attempts=1)
    assert (gate().breaker, gate().failed_in_row) == ("closed", 60)
    assert queue.finish_many([Result(one.id, one.token, "ok") for one in good], now_ms=T + 500) == [True, True]
    assert (gate().breaker, gate().failed_in_row) == ("closed", 0)


def test_an_outage_of_a_busy_queue_is_noticed_before_its_orders_have_spent_their_tries() -> None:
    declare(breaker_after=20, breaker_wait_ms=WAIT)
    for tick in range(30):  # 100 a second: 350 are enough
        put(*(f"o-{tick}-{n}" for n in range(20)), at=T)
        held = queue.claim("w1", limit=20, now_ms=T + 200 * tick)
        queue.finish_many(
            [Result(one.id, one.token, "retry", "connect_refused") for one in held], now_ms=T + 200 * tick
        )
    assert (gate().breaker, gate().failed_in_row, gate().since_ms) == ("open", 360, T + 3_400)
    assert not Job.objects.filter(state="dead").exists()


@pytest.mark.parametrize("place", [0, 30])
def test_an_answer_told_together_with_failures_speaks_for_the_receiver_wherever_it_stands(place: int) -> None:
    declare(breaker_after=3)
    fail_lately()
    put(*(f"u-{n}" for n in range(31)))
    held = queue.claim("w1", limit=31, now_ms=T)
    ends = [Result(one.id, one.token, "retry", "http_503") for one in held]
    ends[place] = Result(held[place].id, held[place].token, "ok")
    queue.finish_many(ends, now_ms=T)
    assert (gate().breaker, gate().failed_in_row) == ("closed", 0)


def test_failures_beside_an_answer_hold_nobody_up() -> None:
    """The usual picture of a receiver that refuses some: no gate is made, and nobody waits for one."""
    put("a-1", "a-2")
    held = queue.claim("w1", limit=2, now_ms=T)
    queue.finish_many([Result("a-1", held[0].token, "ok"), Result("a-2", held[1].token, "retry", "http_503")], now_ms=T)
    assert not Gate.objects.exists()


def test_one_order_asks_and_its_success_closes() -> None:
    opened()
    (probe,) = queue.claim("w1", limit=9, now_ms=T + WAIT)
    assert (gate().breaker, gate().probe_job, gate().probe_token) == ("probing", probe.id, probe.token)
    assert queue.claim("w2", limit=9, now_ms=T + WAIT + 1) == []
    assert queue.finish(probe.id, probe.token, "ok", now_ms=T + WAIT + 2)
    assert (gate().breaker, gate().since_ms) == ("closed", T + WAIT + 2)
    assert len(queue.claim("w2", limit=9, now_ms=T + WAIT + 2)) == 3


def ask(outcome: str, *, at: int) -> int:
    """One order asks and is answered so; from when on the next may."""
    (probe,) = queue.claim("w1", limit=9, now_ms=at)
    assert queue.claim("w2", limit=9, now_ms=at) == []
    assert queue.finish(probe.id, probe.token, outcome, code="" if outcome == "ok" else "http_500", now_ms=at)
    return int(gate().probe_at_ms or 0)


def test_three_failed_probes_double_the_wait() -> None:
    opened()
    put(*(f"y-{n}" for n in range(16)))
    now, waits = T + WAIT, []
    for _ in range(6):
        asked = [ask("retry", at=now) for _ in range(ASKED)]
        assert asked[:-1] == [now] * (ASKED - 1)
        waits.append(asked[-1] - now)
        assert queue.claim("w1", limit=9, now_ms=asked[-1] - 1) == []
        now = asked[-1]
    assert waits == [60_000, 120_000, 240_000, 480_000, 600_000, 600_000]


def test_a_probe_that_fails_for_itself_keeps_no_other_order_waiting() -> None:
    opened()
    assert ask("retry", at=T + WAIT) == T + WAIT
    ask("ok", at=T + WAIT)
    assert (gate().breaker, gate().probes_failed) == ("closed", 0)


def test_after_a_probe_that_was_refused_for_itself_the_next_one_asks_at_once() -> None:
    opened()
    (probe,) = queue.claim("w1", limit=9, now_ms=T + WAIT)
    assert queue.finish(probe.id, probe.token, "permanent", code="http_422", now_ms=T + WAIT + 5)
    assert [len(queue.claim("w1", limit=9, now_ms=T + WAIT + ms)) for ms in (5, 6)] == [1, 0]


def test_a_probe_whose_worker_died_makes_room_for_the_next_at_the_end_of_its_lease() -> None:
    opened()
    (probe,) = queue.claim("w1", limit=9, now_ms=T + WAIT)
    assert queue.claim("w2", limit=9, now_ms=probe.lease_until - 1) == []
    (second,) = queue.claim("w2", limit=9, now_ms=probe.lease_until)
    assert queue.claim("w3", limit=9, now_ms=probe.lease_until) == []
    assert (gate().probe_job, gate().probe_token) == (second.id, second.token)
    assert queue.finish(second.id, second.token, "ok", now_ms=probe.lease_until + 1)
    assert gate().breaker == "closed"


def test_a_probe_that_was_given_back_unstarted_makes_room_at_once() -> None:
    opened()
    (probe,) = queue.claim("w1", limit=9, now_ms=T + WAIT)
    assert queue.release(probe.id, probe.token, now_ms=T + WAIT + 1)
    assert len(queue.claim("w2", limit=9, now_ms=T + WAIT + 1)) == 1


def test_an_unproved_probe_opens_it_again() -> None:
    opened()
    (probe,) = queue.claim("w1", limit=9, now_ms=T + WAIT)
    assert leases.record_unknown(probe.id, probe.token, "bad_ack", now_ms=T + WAIT)
    assert (gate().breaker, gate().probes_failed, gate().probe_at_ms) == ("open", 1, T + WAIT)


def test_answers_under_way_when_it_opened_decide_nothing_unless_one_is_a_success() -> None:
    declare(breaker_after=3, breaker_wait_ms=WAIT)
    fail_lately()
    put(*(f"u-{n}" for n in range(6)))
    held = queue.claim("w1", limit=6, now_ms=T)
    for some in (held[:2], held[2:5]):
        queue.finish_many([Result(one.id, one.token, "retry", "http_503") for one in some], now_ms=T)
        assert (gate().breaker, gate().failed_in_row) == ("open", 3)
    assert queue.finish(held[5].id, held[5].token, "ok", now_ms=T + 7)
    assert gate().breaker == "closed"


def test_a_late_answer_that_its_token_refuses_says_nothing() -> None:
    declare(breaker_after=1)
    put("a-1")
    first = take()
    take("w2", at=T + LEASE)
    assert not queue.finish("a-1", first.token, "retry", code="http_503", now_ms=T + LEASE)
    assert not Gate.objects.exists()


def test_the_row_lives_past_the_lowering_of_the_rule_and_zero_lets_everything_through() -> None:
    opened()
    store.set_limits("snacks", {"breaker_after": 0})
    got = queue.claim("w1", limit=9, now_ms=T + 2)
    assert [one.id for one in got] == ["x-1", "x-2"]
    assert queue.finish(got[0].id, got[0].token, "retry", code="http_503", now_ms=T + 2)
    assert (gate().breaker, gate().failed_in_row) == ("closed", 0)


def test_rate_and_breaker_hold_together() -> None:
    declare(breaker_after=2, breaker_wait_ms=WAIT, delivery_rate_mj=1_000_000)
    fail_lately()
    fail(1)
    put("x-1", "x-2")
    assert queue.claim("w1", limit=9, now_ms=T + 10) == []
    assert len(queue.claim("w1", limit=9, now_ms=T + WAIT)) == 1


def test_opening_and_closing_are_in_the_record_and_failed_probes_are_not() -> None:
    opened()
    put("x-3", "x-4")
    now = T + WAIT
    for outcome in (*["retry"] * ASKED, "ok"):
        now = ask(outcome, at=now)
    assert [(action, target) for action, target, _ in told()] == [
        ("breaker.close", "queue:snacks"),
        ("breaker.open", "queue:snacks"),
    ]
    assert told()[1][2] == f'{{"code":"http_503","failed_in_row":3,"silent_ms":{SILENT_MS}}}'
    assert f'"open_ms":{3 * WAIT}' in told()[0][2]


def test_a_receiver_that_works_costs_no_write() -> None:
    put(*(f"a-{n}" for n in range(3)))
    for _ in range(2):
        lease = take()
        with CaptureQueriesContext(connection) as asked:
            assert queue.finish(lease.id, lease.token, "ok", now_ms=T)
        assert not [
            query["sql"] for query in asked if "gates" in query["sql"] and not query["sql"].startswith("SELECT")
        ]
    assert not Gate.objects.exists()
