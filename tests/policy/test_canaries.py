"""The trial and the breaker: what is judged how, and how a trial is shared out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy.canaries import WINDOW, Trial, allot, judge, tripped

T = 1_000_000
CAUSES = st.dictionaries(
    st.tuples(st.sampled_from(["permanent", "exhausted"]), st.text("ab", max_size=3)),
    st.integers(0, 10_000),
    max_size=8,
)


def trial(**more):
    return Trial(
        **(
            {"sent": 10, "left": 0, "done": 0, "died": 0, "sent_at_ms": T, "wait_ms": 60_000, "stop_permille": 500}
            | more
        )
    )


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({"left": 1}, "sending"),
        ({"left": 1, "died": 9, "sent": 9}, "sending"),
        ({"sent_at_ms": None}, "sending"),
        ({}, "waiting"),
        ({"done": 5, "died": 4}, "waiting"),
        ({"died": 5}, "failed"),
        ({"done": 5, "died": 5}, "failed"),
        ({"done": 6, "died": 4}, "passed"),
        ({"done": 10}, "passed"),
        ({"done": 10, "stop_permille": 1}, "passed"),
        ({"died": 1, "stop_permille": 1}, "failed"),
        ({"died": 9, "stop_permille": 1_000}, "waiting"),
        ({"died": 10, "stop_permille": 1_000}, "failed"),
        ({"sent": 0}, "passed"),
        ({"sent": 2_000, "died": 1_999, "stop_permille": 1_000}, "waiting"),
        ({"sent": 2_000, "done": 1, "died": 1_999, "stop_permille": 1_000}, "passed"),
    ],
)
def test_a_trial_is_judged_once_it_was_sent(more, verdict):
    assert judge(trial(**more), T + 59_999) == verdict


@pytest.mark.parametrize(("now", "verdict"), [(T + 59_999, "waiting"), (T + 60_000, "silent"), (T - 10**6, "waiting")])
def test_results_that_do_not_come_make_it_silent(now, verdict):
    assert judge(trial(done=9), now) == verdict


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20), st.integers(1, 1_000))
def test_failing_is_for_ever_and_passing_needs_every_result(done, died, waiting, share):
    sent = done + died + waiting
    verdict = judge(trial(sent=sent, done=done, died=died, stop_permille=share), T)
    if verdict == "failed":
        for more in range(waiting + 1):  # whatever comes, it stays so
            assert (
                judge(trial(sent=sent, done=done + more, died=died + waiting - more, stop_permille=share), T)
                == "failed"
            )
    if verdict == "passed":
        assert waiting == 0
        assert died * 1_000 < share * sent or died == 0


@pytest.mark.parametrize(
    ("died", "share", "stops"),
    [
        (0, 0, False),
        (0, 1, False),
        (1, 10, True),
        (1, 11, False),
        (49, 500, False),
        (50, 500, True),
        (99, 1_000, False),
        (100, 1_000, True),
    ],
)
def test_the_breaker_counts_missing_results_as_good(died, share, stops):
    assert tripped(died, share) is stops
    assert WINDOW == 100


@given(CAUSES, st.integers(0, 1_000))
def test_a_trial_is_shared_out_whole_and_no_cause_gives_more_than_it_has(groups, size):
    given_ = allot(groups, size)
    assert sum(given_.values()) == min(size, sum(groups.values()))
    assert all(0 < n <= groups[group] for group, n in given_.items())


@pytest.mark.parametrize(
    ("counts", "size", "shares"),
    [
        ({}, 5, {}),
        ({"a": 0}, 5, {}),
        ({"a": 3, "b": 1}, 0, {}),
        ({"a": 3, "b": 3, "c": 9}, 2, {"c": 1, "a": 1}),
        ({"a": 2, "b": 1}, 3, {"a": 2, "b": 1}),
        ({"a": 2, "b": 1, "c": 0}, 11, {"a": 2, "b": 1}),
        ({"a": 3, "b": 3}, 5, {"a": 3, "b": 2}),  # alike: by name
        ({"a": 3, "b": 2}, 4, {"a": 2, "b": 2}),  # the larger remainder
        ({"a": 2, "b": 4}, 4, {"b": 3, "a": 1}),  # the same remainder: the larger cause
        ({"a": 90, "b": 9, "c": 1}, 20, {"a": 17, "b": 2, "c": 1}),
    ],
)
def test_a_trial_is_one_of_each_and_the_rest_by_share(counts, size, shares):
    assert allot({("e", code): n for code, n in counts.items()}, size) == {("e", code): n for code, n in shares.items()}


@given(CAUSES, st.integers(0, 1_000))
def test_every_cause_is_tried_when_there_is_room(groups, size):
    causes = {group for group, n in groups.items() if n}
    given_ = allot(groups, size)
    if size >= len(causes):
        assert set(given_) == causes
    else:  # then the largest
        least = min((groups[group] for group in given_), default=0)
        assert all(groups[group] <= least for group in causes - set(given_)) or not given_


@given(CAUSES, st.integers(0, 1_000))
def test_a_larger_cause_is_never_tried_less(groups, size):
    given_ = allot(groups, size)
    for one in groups:
        for other in groups:
            if groups[one] > groups[other]:
                assert given_.get(one, 0) >= given_.get(other, 0)
