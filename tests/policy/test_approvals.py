"""What a decision must say, and that an approver only ever makes a redrive stricter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy.approvals import (
    WARNINGS,
    Tightening,
    Warned,
    check_seen,
    check_tightening,
    check_two_people,
    check_typed,
    must_type_count,
)
from queue_app.policy.errors import NotAllowed
from queue_app.policy.filters import Filter
from queue_app.policy.plans import InvalidPlan, PlanMoved
from queue_app.policy.selections import (
    CHUNK,
    EMPTY_DIGEST,
    by_filter,
    by_group,
    by_ids,
    digest_on,
    from_text,
    next_chunk,
)

A, B = ("permanent", "http_422"), ("exhausted", "http_503")


@pytest.mark.parametrize(
    ("n", "codes", "typed"),
    [
        (1, [], False),
        (1, ["effect_possible"], False),
        (1, ["stale"], True),
        (2, ["effect_possible"], True),
        (1_000, [], False),
        (1_001, [], True),
        (5, ["mixed"], True),
        (5, ["no_worker", "no_redriver", "queue_paused", "no_trial", "nobody_looked"], False),
    ],
)
def test_when_the_number_is_typed(n, codes, typed):
    assert must_type_count(n, [Warned(code) for code in codes]) is typed
    assert set(codes) <= set(WARNINGS)


@pytest.mark.parametrize("text", ["12000", "12,000", "12.000", "12 000", " 12000 ", "12\u202f000", "12'000"])
def test_a_number_may_be_typed_as_it_is_shown(text):
    check_typed(text, 12_000)


@pytest.mark.parametrize(
    "text", ["", None, "12001", "0x2ee0", "12e3", "１２０００", "-12000", "٣", 12_000, "9" * 5_000]
)
def test_another_number_is_refused(text):
    with pytest.raises(InvalidPlan, match="12000"):
        check_typed(text, 12_000)


@given(st.none() | st.integers(1, 9), st.integers(1, 9), st.booleans())
def test_one_person_decides_alone_only_under_the_setting(asked, decided, solo):
    if asked == decided and not solo:
        with pytest.raises(NotAllowed):
            check_two_people(asked, decided, solo=solo)
    else:
        assert check_two_people(asked, decided, solo=solo) is (asked == decided)


@given(st.text("ab", max_size=3), st.integers(-1, 3), st.text("ab", max_size=3), st.integers(1, 2))
def test_only_what_was_seen_is_decided(digest, round_, now_digest, now_round):
    if (digest, round_) == (now_digest, now_round):
        check_seen(digest, round_, now_digest=now_digest, now_round=now_round)
    else:
        with pytest.raises(PlanMoved):
            check_seen(digest, round_, now_digest=now_digest, now_round=now_round)


WISHES = st.builds(
    Tightening,
    st.none() | st.integers(0, 200),
    st.none() | st.integers(-1, 30),
    st.lists(st.sampled_from([A, B, ("x", "y")]), max_size=3).map(tuple),
)


@given(WISHES)
def test_a_wish_that_passes_never_widens(wish):
    stricter = (
        (wish.rate_mj is None or 10 <= wish.rate_mj <= 100)
        and (wish.canary is None or wish.canary >= 5)
        and set(wish.left_out) < {A, B}
    )
    if stricter:
        assert check_tightening(wish, asked_rate_mj=100, asked_canary=5, groups=[A, B]) is wish
    else:
        with pytest.raises(InvalidPlan) as refused:
            check_tightening(wish, asked_rate_mj=100, asked_canary=5, groups=[A, B])
        assert refused.value.field in ("rate", "canary", "left_out")


# --- selections -----------------------------------------------------------------------------------------------------


def test_a_selection_reads_back_from_its_text():
    for selection in (by_filter(Filter(queue="snacks", min_age_ms=5)), by_group("snacks", *A), by_ids(["b", "a", "b"])):
        assert from_text(selection.canonical()) == selection
    assert by_ids(["b", "a", "b"]).ids == ("a", "b")


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"ids":[]}', '{"ids":"a"}', '{"filter":"{"}', '{"filter":{}}', "null"]
)
def test_stored_text_that_is_no_selection_is_refused(text):
    with pytest.raises(InvalidPlan):
        from_text(text)


def test_a_redrive_is_of_one_queue_and_of_a_number_that_a_form_carries():
    with pytest.raises(InvalidPlan, match="one queue"):
        by_filter(Filter(reason="permanent"))
    with pytest.raises(InvalidPlan, match="No order"):
        by_ids([])
    assert len(by_ids([f"o{n}" for n in range(1_000)]).ids) == 1_000
    with pytest.raises(InvalidPlan, match="1000"):
        by_ids([f"o{n}" for n in range(1_001)])


ITEMS = st.lists(st.tuples(st.integers(1, 99), st.text("ab", min_size=1, max_size=3), st.integers(0, 9)), max_size=12)


@given(ITEMS, st.integers(0, 12))
def test_a_seal_does_not_depend_on_the_cut(items, cut):
    whole = digest_on(EMPTY_DIGEST, items)
    assert digest_on(digest_on(EMPTY_DIGEST, items[:cut]), items[cut:]) == whole


@given(ITEMS, ITEMS)
def test_two_lists_have_two_seals(one, other):
    assert (digest_on(EMPTY_DIGEST, one) == digest_on(EMPTY_DIGEST, other)) == (one == other)


@given(st.integers(*CHUNK), st.integers(0, 10_000))
def test_a_chunk_follows_the_time_it_took(size, took_ms):
    after = next_chunk(size, took_ms)
    assert CHUNK[0] <= after <= CHUNK[1]
    assert after <= size * 2
    if took_ms > 40:
        assert after <= max(size // 2, CHUNK[0])
