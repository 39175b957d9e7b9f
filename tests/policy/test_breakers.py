"""The breaker: a row of failures opens it, nothing but a success closes it, and one order at a time asks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy.attempts import Result
from queue_app.policy.breakers import (
    CLOSED,
    FAILS,
    MOVES,
    NEITHER,
    OPEN,
    PROBE_FAILS,
    PROBE_NEITHER,
    PROBING,
    WAIT_CAP_MS,
    WORKS,
    Breaker,
    Rules,
    after_end,
    lets_through,
    probing,
    told,
    wait_ms,
)

T = 1_800_000_000_000
RULES = Rules(3, 1_000)
PROBE = ("p", 7)
ENDS = {WORKS: ("ok", ""), FAILS: ("retry", "http_503"), NEITHER: ("permanent", "http_422")}


def end(what, job="n", token=1):
    outcome, code = ENDS[what]
    return Result(job, token, outcome, code)


def row_of(length, rules=RULES, now=T):
    breaker = Breaker()
    for _ in range(length):
        breaker = after_end(breaker, end(FAILS), rules, now)
    return breaker


@pytest.mark.parametrize(
    ("outcome", "code", "what"),
    [
        ("ok", "", WORKS),
        *(("permanent", code, NEITHER) for code in ("http_400", "http_409", "http_410", "http_413", "http_422", "")),
        *(("retry", code, NEITHER) for code in ("http_425", "http_429")),
        *(("retry", f"http_{status}", FAILS) for status in (408, 500, 502, 503, 504, 599)),
        *(("retry", code, FAILS) for code in ("dns", "connect_refused", "connection_lost", "tls", "short_body", "")),
        *(("retry", f"timeout_{part}", FAILS) for part in ("connect", "read", "write", "total")),
        *(("unknown", code, FAILS) for code in ("bad_ack", "http_404", "redirect", "wrong_id", "exception")),
        ("unknown", "bad_order", NEITHER),
    ],
)
def test_what_a_try_tells_of_the_receiver(outcome, code, what):
    assert told(outcome, code) == what


def test_the_table_has_a_move_for_every_state_and_every_answer():
    answers = {CLOSED: {WORKS, FAILS, NEITHER}, OPEN: {WORKS, FAILS, NEITHER}}
    answers[PROBING] = {WORKS, FAILS, NEITHER, PROBE_FAILS, PROBE_NEITHER}
    assert set(MOVES) == {(state, what) for state, some in answers.items() for what in some}


def test_the_last_failure_of_the_row_opens_it_and_the_one_before_does_not():
    assert row_of(2) == Breaker(CLOSED, 2)
    assert row_of(3) == Breaker(OPEN, 3, T, T + 1_000)


@pytest.mark.parametrize(("what", "row"), [(WORKS, 0), (NEITHER, 2)])
def test_a_success_ends_the_row_and_a_refusal_of_one_order_leaves_it(what, row):
    assert after_end(row_of(2), end(what), RULES, T).failed_in_row == row


def test_one_order_may_be_handed_out_from_the_end_of_the_wait_on():
    through = {at: lets_through(row_of(3), RULES, T + at, probe_runs=False) for at in (0, 999, 1_000, 5_000)}
    assert through == {0: 0, 999: 0, 1_000: 1, 5_000: 1}


def test_none_beside_the_probe_and_another_when_it_is_gone_without_a_word():
    asked = probing(row_of(3), *PROBE)
    assert (asked.state, asked.probe_job, asked.probe_token) == (PROBING, *PROBE)
    assert [lets_through(asked, RULES, T + 9_000, probe_runs=runs) for runs in (True, False)] == [0, 1]


def test_the_probes_answer_decides():
    asked, now = probing(row_of(3), *PROBE), T + 1_000
    assert after_end(asked, end(WORKS, *PROBE), RULES, now) == Breaker(since_ms=now)
    assert after_end(asked, end(FAILS, *PROBE), RULES, now) == Breaker(OPEN, 4, T, now + 2_000)
    assert after_end(asked, end(NEITHER, *PROBE), RULES, now) == Breaker(OPEN, 3, T, now)


@pytest.mark.parametrize("other", [("p", 6), ("n", 7)], ids=["an older try of the order", "another order"])
def test_what_was_on_its_way_before_decides_nothing_unless_it_succeeds(other):
    for breaker in (row_of(3), probing(row_of(3), *PROBE)):
        for what in (FAILS, NEITHER):
            assert after_end(breaker, end(what, *other), RULES, T + 9) == breaker
        assert after_end(breaker, end(WORKS, *other), RULES, T + 9) == Breaker(since_ms=T + 9)


def test_waits_double_up_to_the_bound_and_a_longer_rule_is_its_own_bound():
    assert [wait_ms(3 + failed, RULES) for failed in range(4)] == [1_000, 2_000, 4_000, 8_000]
    assert wait_ms(10_000, RULES) == WAIT_CAP_MS
    assert [wait_ms(row, Rules(3, 2 * WAIT_CAP_MS)) for row in (3, 9)] == [2 * WAIT_CAP_MS] * 2


def test_a_row_of_zero_never_opens_and_lets_what_was_open_close():
    never = Rules(0, 1_000)
    assert row_of(500, never) == Breaker()
    assert lets_through(row_of(3), never, T, probe_runs=False) is None
    assert after_end(row_of(3), end(FAILS), never, T + 5) == Breaker(since_ms=T + 5)


def test_a_clock_set_back_makes_nobody_wait_longer_than_the_longest_wait():
    opened = row_of(3)
    assert lets_through(opened, RULES, T - WAIT_CAP_MS + 1_000, probe_runs=False) == 0
    assert lets_through(opened, RULES, T - WAIT_CAP_MS + 999, probe_runs=False) == 1


STORIES = st.lists(st.tuples(st.sampled_from([WORKS, FAILS, NEITHER]), st.booleans(), st.integers(0, 3_000)))


@given(STORIES, st.integers(1, 6))
def test_any_story_keeps_the_promises(story, after):
    rules, breaker, now, row, handed = Rules(after, 1_000), Breaker(), T, 0, 0
    for what, of_probe, span in story:
        now += span
        if lets_through(breaker, rules, now, probe_runs=True) == 1:
            handed += 1
            breaker = probing(breaker, "p", handed)
        before = breaker
        breaker = after_end(breaker, end(what, "p", handed) if of_probe else end(what), rules, now)
        row = 0 if what == WORKS else row + (what == FAILS)
        if what == WORKS:
            assert (breaker.state, breaker.failed_in_row) == (CLOSED, 0)
        if before.state == CLOSED:
            assert (breaker.state == OPEN) == (row >= after)
        elif what != WORKS:
            assert breaker.state != CLOSED, "nothing but a success closes it"
        if breaker.state == OPEN and before != breaker:
            assert now <= breaker.probe_at_ms <= now + WAIT_CAP_MS
        assert (breaker.state == PROBING) <= (breaker.probe_token == handed)
        assert breaker.failed_in_row >= before.failed_in_row or what == WORKS
        assert (
            breaker.since_ms == before.since_ms
            or (before.state == CLOSED) != (breaker.state == CLOSED)
            or what == WORKS
        )


@given(st.integers(1, 10**6), st.integers(1_000, 86_400_000), st.integers(0, 10**6))
def test_no_wait_is_shorter_than_the_rules_nor_longer_than_the_bound(after, wait, more):
    found = wait_ms(after + more, Rules(after, wait))
    assert wait <= found <= max(wait, WAIT_CAP_MS)
