"""The breaker: failures without any answer for a while open it, nothing but a success closes it, one order at a time asks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy.attempts import Result
from queue_app.policy.breakers import (
    ANSWERS,
    ASKED,
    CLOSED,
    FAILS,
    MOVES,
    NEITHER,
    OPEN,
    PROBE_FAILS,
    PROBE_NEITHER,
    PROBING,
    SILENT_MS,
    WAIT_CAP_MS,
    WORKS,
    Breaker,
    Rules,
    after_ends,
    asks_now,
    fails_everything,
    lets_through,
    probing,
    told,
    wait_ms,
)

T = 1_800_000_000_000
RULES = Rules(3, 1_000)
PROBE = ("p", 7)
ENDS = {
    WORKS: ("ok", ""), ANSWERS: ("permanent", "http_422"), FAILS: ("retry", "http_503"), NEITHER: ("unknown", "bad_order")
}  # fmt: skip
OPENED = Breaker(OPEN, 3, T, T + 1_000, silent_since_ms=T - SILENT_MS)


def end(what, job="n", token=1):
    outcome, code = ENDS[what]
    return Result(job, token, outcome, code)


def after_end(breaker, what, now, rules=RULES, probe=("n", 1)):
    return after_ends(breaker, [end(what, *probe)], rules, now)


def row_of(length, rules=RULES):
    """So many failures, the last at T and the first as long ago as the fewest need."""
    first = after_ends(Breaker(), [end(FAILS)], rules, T - SILENT_MS)
    return after_ends(first, [end(FAILS)] * (length - 1), rules, T)


@pytest.mark.parametrize(
    ("outcome", "code", "what"),
    [
        ("ok", "", WORKS),
        *(("permanent", code, ANSWERS) for code in ("http_400", "http_409", "http_410", "http_413", "http_422", "")),
        *(("retry", code, ANSWERS) for code in ("http_425", "http_429")),
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
    some = {WORKS, ANSWERS, FAILS, NEITHER}
    answers = {CLOSED: some, OPEN: some, PROBING: some | {PROBE_FAILS, PROBE_NEITHER}}
    assert set(MOVES) == {(state, what) for state, some in answers.items() for what in some}


@pytest.mark.parametrize(
    ("failed", "silent_ms", "opens"),
    [
        (19, 3_600_000, False),  # too few, however long
        (20, 59_999, False),
        (20, 60_000, True),
        (21, 200, False),  # the tries of one cause, due together
        (199, 6_000, False),
        (200, 6_000, True),
        (1_199, 1_000, False),
        (1_200, 1_000, True),
        (100_000, 0, False),  # one moment, however many
    ],
)
def test_number_and_time_together_say_that_it_fails_everything(failed, silent_ms, opens):
    assert fails_everything(failed, silent_ms, Rules(20, 1_000)) is opens
    breaker = after_ends(Breaker(), [end(FAILS)], Rules(20, 1_000), T - silent_ms)
    breaker = after_ends(breaker, [end(FAILS)] * (failed - 1), Rules(20, 1_000), T)
    assert (breaker.state == OPEN) is opens


def test_the_last_failure_that_is_needed_opens_it_and_the_one_before_does_not():
    assert row_of(2) == Breaker(CLOSED, 2, silent_since_ms=T - SILENT_MS)
    assert row_of(3) == OPENED


@pytest.mark.parametrize(("what", "row"), [(WORKS, 0), (ANSWERS, 0), (NEITHER, 2)])
def test_any_answer_ends_the_row_and_what_never_was_a_request_leaves_it(what, row):
    breaker = after_end(row_of(2), what, T)
    assert (breaker.failed_in_row, breaker.silent_since_ms is None) == (row, not row)
    assert after_end(breaker, FAILS, T).state == (CLOSED if not row else OPEN)


@pytest.mark.parametrize("what", [WORKS, ANSWERS])
@pytest.mark.parametrize("place", [0, 500, 1_000])
def test_one_answer_among_a_thousand_failures_of_a_turn_counts_wherever_it_stands(what, place):
    turn = [end(FAILS)] * 1_000
    turn.insert(place, end(what))
    assert after_ends(row_of(2), turn, RULES, T).failed_in_row == 0


def test_one_order_may_be_handed_out_from_the_end_of_the_wait_on():
    through = {at: lets_through(OPENED, RULES, T + at, probe_runs=False) for at in (0, 999, 1_000, 5_000)}
    assert through == {0: 0, 999: 0, 1_000: 1, 5_000: 1}


def test_none_beside_the_probe_and_another_when_it_is_gone_without_a_word():
    asked = probing(OPENED, *PROBE)
    assert (asked.state, asked.probe_job, asked.probe_token) == (PROBING, *PROBE)
    assert [lets_through(asked, RULES, T + 9_000, probe_runs=runs) for runs in (True, False)] == [0, 1]


def test_the_probes_answer_decides():
    asked, now, first = probing(OPENED, *PROBE), T + 1_000, T - SILENT_MS
    assert after_end(asked, WORKS, now, probe=PROBE) == Breaker(since_ms=now)
    breaker = asked
    for failed, due in ((1, now), (2, now), (3, now + 2_000), (4, now)):  # three ask in turn, then the wait is doubled
        breaker = after_end(breaker, FAILS, now, probe=PROBE)
        assert breaker == Breaker(OPEN, 3 + failed, T, due, silent_since_ms=first, probes_failed=failed)
        breaker = probing(breaker, *PROBE)
    for what in (ANSWERS, NEITHER):
        assert after_end(asked, what, now, probe=PROBE) == Breaker(OPEN, 3, T, now, silent_since_ms=first)


@pytest.mark.parametrize("other", [("p", 6), ("n", 7)], ids=["an older try of the order", "another order"])
def test_what_was_on_its_way_before_decides_nothing_unless_it_succeeds(other):
    for breaker in (OPENED, probing(OPENED, *PROBE)):
        for what in (FAILS, ANSWERS, NEITHER):
            assert after_end(breaker, what, T + 9, probe=other) == breaker
        assert after_end(breaker, WORKS, T + 9, probe=other) == Breaker(since_ms=T + 9)


def test_waits_double_up_to_the_bound_and_a_longer_rule_is_its_own_bound():
    assert [wait_ms(failed, RULES) for failed in range(0, 12, ASKED)] == [1_000, 2_000, 4_000, 8_000]
    assert wait_ms(10_000, RULES) == WAIT_CAP_MS
    assert [wait_ms(failed, Rules(3, 2 * WAIT_CAP_MS)) for failed in (0, 9)] == [2 * WAIT_CAP_MS] * 2


def test_a_crowd_that_opened_it_lengthens_no_wait():
    breaker = after_ends(row_of(2), [end(FAILS)] * 500, RULES, T)
    assert (breaker.failed_in_row, breaker.probe_at_ms) == (502, T + 1_000)


def test_a_row_of_zero_never_opens_and_lets_what_was_open_close():
    never = Rules(0, 1_000)
    assert row_of(500, never) == Breaker()
    assert lets_through(OPENED, never, T, probe_runs=False) is None
    assert after_end(OPENED, FAILS, T + 5, never) == Breaker(since_ms=T + 5)


def test_a_clock_set_back_keeps_the_number_and_begins_the_time_anew():
    back = after_end(row_of(2), FAILS, T - 3_600_000)
    assert back == Breaker(CLOSED, 3, silent_since_ms=T - 3_600_000)
    assert after_end(back, FAILS, T - 3_600_000 + SILENT_MS).state == OPEN


def test_a_clock_set_back_makes_nobody_wait_longer_than_the_longest_wait():
    assert lets_through(OPENED, RULES, T - WAIT_CAP_MS + 1_000, probe_runs=False) == 0
    assert lets_through(OPENED, RULES, T - WAIT_CAP_MS + 999, probe_runs=False) == 1


@pytest.mark.parametrize("breaker", [Breaker(), row_of(2), OPENED, probing(OPENED, *PROBE)])
def test_a_turn_without_an_end_moves_nothing(breaker):
    assert after_ends(breaker, [], RULES, T) == breaker


@pytest.mark.parametrize("breaker", [Breaker(CLOSED, 2, 5), Breaker(OPEN, 0, 5), Breaker(PROBING, 0, 5)])
def test_a_rule_of_zero_forgets_whatever_the_breaker_knew(breaker):
    assert after_ends(breaker, [], Rules(0, 1_000), T) == Breaker(since_ms=T)
    assert after_ends(Breaker(CLOSED, 0, 5), [end(FAILS)], Rules(0, 1_000), T) == Breaker(CLOSED, 0, 5)


@pytest.mark.parametrize(
    ("probe_at_ms", "now_ms", "asks"),
    [(None, 0, True), (None, T, True), (T, T - 1, False), (T, T, True), (T, T - WAIT_CAP_MS, False),
     (T, T - WAIT_CAP_MS - 1, True)],
)  # fmt: skip
def test_an_open_one_asks_when_its_wait_is_over_or_cannot_be(probe_at_ms, now_ms, asks):
    assert asks_now(Breaker(OPEN, probe_at_ms=probe_at_ms), RULES, now_ms) is asks
    longer = Rules(3, WAIT_CAP_MS + 1)
    assert asks_now(Breaker(OPEN, probe_at_ms=T), longer, T - WAIT_CAP_MS - 1) is False
    assert asks_now(Breaker(OPEN, probe_at_ms=T), longer, T - WAIT_CAP_MS - 2) is True


TURNS = st.lists(st.sampled_from([WORKS, ANSWERS, FAILS, FAILS, FAILS, NEITHER]), min_size=1, max_size=5)
STORIES = st.lists(st.tuples(TURNS, st.booleans(), st.integers(0, 40_000)))


@given(STORIES, st.integers(1, 6))
def test_any_story_keeps_the_promises(story, after):
    rules, breaker, now, handed = Rules(after, 1_000), Breaker(), T, 0
    row, first, answered_ms = 0, T, T  # told by the story alone
    for turn, of_probe, span in story:
        now += span
        if lets_through(breaker, rules, now, probe_runs=True) == 1:
            handed += 1
            breaker = probing(breaker, "p", handed)
        before = breaker
        ends = [end(what, *(("p", handed) if of_probe and not place else ())) for place, what in enumerate(turn)]
        breaker = after_ends(before, ends, rules, now)
        assert after_ends(before, ends[::-1], rules, now) == breaker, "the order in a turn tells nothing"
        answers = WORKS in turn or ANSWERS in turn
        if answers:
            row, answered_ms = 0, now
        elif FAILS in turn:
            first = first if row else now
            row += turn.count(FAILS)
        if WORKS in turn:
            assert (breaker.state, breaker.failed_in_row) == (CLOSED, 0)
        elif before.state == CLOSED:
            assert (breaker.state == OPEN) == (FAILS in turn and fails_everything(row, now - first, rules))
        else:
            assert breaker.state != CLOSED, "nothing but a success closes it"
        if before.state == CLOSED and breaker.state == OPEN:
            assert answered_ms < now, "it has just answered"
        if breaker.state == OPEN and before != breaker:
            assert now <= breaker.probe_at_ms <= now + WAIT_CAP_MS
        assert (breaker.state == PROBING) <= (breaker.probe_token == handed)
        if breaker.state != CLOSED and before.state != CLOSED:
            assert breaker.failed_in_row - before.failed_in_row == breaker.probes_failed - before.probes_failed
            assert breaker.since_ms == before.since_ms


@given(st.lists(st.tuples(TURNS, st.integers(0, 999)), max_size=40), st.integers(1, 40))
def test_whoever_answers_every_second_is_never_left_alone_below_sixty_failures_a_second(turns, after):
    """However the failures lie between two answers: fewer than 60 x `after` of them within a second open nothing."""
    breaker, now, rules = Breaker(), T, Rules(after, 1_000)
    for turn, span in turns:
        breaker = after_ends(breaker, [end(what) for what in turn], rules, now)
        now += span
        breaker = after_ends(breaker, [end(FAILS)] * (60 * after - 6), rules, now)
        assert breaker.state == CLOSED
        breaker = after_ends(breaker, [end(ANSWERS)], rules, now)


@given(st.integers(1, 100), st.integers(1, 2_000))
def test_one_that_is_gone_is_left_alone_before_many_tries_are_spent(after, per_s):
    """Nobody answers, `per_s` failures a second: at most sqrt(60 x after x rate) tries and those of two seconds."""
    breaker, rules, second = Breaker(), Rules(after, 1_000), 0
    while breaker.state == CLOSED:
        breaker = after_ends(breaker, [end(FAILS)] * per_s, rules, T + 1_000 * second)
        second += 1
    assert breaker.failed_in_row <= max((60 * after * per_s) ** 0.5, after) + 2 * per_s


@given(st.integers(1, 10**6), st.integers(1_000, 86_400_000), st.integers(0, 10**6))
def test_no_wait_is_shorter_than_the_rules_nor_longer_than_the_bound(after, wait, failed):
    found = wait_ms(failed, Rules(after, wait))
    assert wait <= found <= max(wait, WAIT_CAP_MS)
