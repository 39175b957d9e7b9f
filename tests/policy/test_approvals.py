"""What a decision must say, and that an approver only ever makes a redrive stricter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy.approvals import (
    WARNINGS,
    Grant,
    Tightening,
    Warned,
    check_seen,
    check_tightening,
    check_two_people,
    check_typed,
    granted,
    least_trial,
    must_type_count,
    recorded_sentences,
)
from queue_app.policy.errors import NotAllowed, SnackOpsError
from queue_app.policy.plans import InvalidPlan, PlanMoved

A, B = ("permanent", "http_422"), ("exhausted", "http_503")


@pytest.mark.parametrize(
    ("n", "codes", "typed"),
    [
        (1, [], False),
        (1, ["effect_possible"], False),
        (1, ["stale"], True),
        (2, ["effect_possible"], True),
        (0, ["mixed", "stale"], True),
        (0, ["mixed"], False),
        (2, ["stale"], True),
        (2, ["no_worker"], False),
        (2, ["no_worker", "ordered_queue"], True),
        (2, ["redriven_before"], True),
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


def refusal(call, *given, **named):
    with pytest.raises(SnackOpsError) as refused:
        call(*given, **named)
    error = refused.value
    return type(error), error.template, dict(error.values), getattr(error, "offered", "")


TYPE_IT = "Type the number of orders, %(n)s, to approve."
TYPE_IT_SO = "Type the number of orders, %(n)s, to approve; this is %(given)s."


@pytest.mark.parametrize(
    ("typed", "template", "values", "offered"),
    [
        ("", TYPE_IT, {}, ""),
        (None, TYPE_IT, {}, ""),
        ("XX", TYPE_IT_SO, {"given": "'XX'"}, ""),
        ("１２０００", TYPE_IT_SO, {"given": "'" + "\\uff11\\uff12" + "\\uff10" * 3 + "'"}, "12000"),
        (12_000, TYPE_IT_SO, {"given": "12000"}, ""),
        ("12001", TYPE_IT_SO, {"given": "'12001'"}, ""),
    ],
    ids=["empty", "None", "letters", "full width", "number", "other"],
)
def test_a_number_not_typed_or_another_is_refused_whole(typed, template, values, offered):
    found = refusal(check_typed, typed, 12_000)
    assert found == (InvalidPlan, template, {"field": "typed", "n": 12_000, **values}, offered)


def test_grouping_marks_are_passed_over_but_no_letters():
    check_typed("1'2.3’4 5,6\u00a07\u202f8", 12_345_678)
    for typed in ("X5", "5X", "XX5XX", ","):
        assert refusal(check_typed, typed, 5)[0] is InvalidPlan
    check_typed("9" * 12, 10**12 - 1)
    assert refusal(check_typed, "1" * 13, int("1" * 13))[0] is InvalidPlan


def test_decisions_of_one_person_and_on_what_is_gone_are_refused_whole():
    alone = "Nobody decides on what they asked for themselves."
    assert refusal(check_two_people, 7, 7, solo=False) == (NotAllowed, alone, {}, "")
    assert check_two_people(7, 7, solo=True) is True
    assert check_two_people(7, 8, solo=True) is False
    assert check_two_people(None, 8, solo=False) is False
    moved = "The list or the round changed since this page was loaded: look again."
    for digest, round_ in (("b", 1), ("a", 2), ("a", True), ("a", 1.0), ("a", "1"), (None, 1)):
        assert refusal(check_seen, digest, round_, now_digest="a", now_round=1) == (PlanMoved, moved, {}, "")
    check_seen("a", 1, now_digest="a", now_round=1)


SLOWER = "An approver may only make it slower than the %(asked)s orders/s asked for."
LARGER = "The trial may only become larger: from %(asked)s to %(most)s orders."
OF_THIS_LIST = "A cause that is left out must be one of this list."
NOTHING_LEFT = "With every cause left out nothing remains to redrive: reject it instead."
RATE, CANARY = {"field": "rate", "asked": "2.5"}, {"field": "canary", "asked": 5, "most": 1_000}


@pytest.mark.parametrize(
    ("wish", "template", "values"),
    [
        (Tightening(rate_mj=2_501), SLOWER, RATE),
        (Tightening(rate_mj=9), SLOWER, RATE),
        (Tightening(rate_mj=True), SLOWER, RATE),
        (Tightening(rate_mj=100.0), SLOWER, RATE),  # type: ignore[arg-type]
        (Tightening(canary=4), LARGER, CANARY),
        (Tightening(canary=1_001), LARGER, CANARY),
        (Tightening(canary=5.0), LARGER, CANARY),  # type: ignore[arg-type]
        (Tightening(left_out=(("x", "y"),)), OF_THIS_LIST, {"field": "left_out"}),
        (Tightening(left_out=(A, ("x", "y"))), OF_THIS_LIST, {"field": "left_out"}),
        (Tightening(left_out=(A, B)), NOTHING_LEFT, {"field": "left_out"}),
    ],
)
def test_a_wish_that_widens_is_refused_whole(wish, template, values):
    found = refusal(check_tightening, wish, asked_rate_mj=2_500, asked_canary=5, groups=[A, B])
    assert found == (InvalidPlan, template, values, "")


@pytest.mark.parametrize(
    "wish",
    [
        Tightening(),
        Tightening(rate_mj=10),
        Tightening(rate_mj=2_500),
        Tightening(canary=5),
        Tightening(canary=1_000),
        Tightening(left_out=(B,)),
        Tightening(10, 1_000, (A,)),
    ],
)
def test_a_wish_is_taken_up_to_both_its_bounds(wish):
    assert check_tightening(wish, asked_rate_mj=2_500, asked_canary=5, groups=[A, B]) is wish


def test_nothing_may_be_left_out_of_a_list_without_causes():
    assert check_tightening(Tightening(), asked_rate_mj=10, asked_canary=0, groups=[]) == Tightening()


BY_PASSWORD = "Identity proved by password."


@pytest.mark.parametrize(
    ("grant", "sentences"),
    [
        (
            Grant(12, "approve", 12_345, 2_500, 1_000),
            (f"lea approves R-12: 12,345 orders at up to 2.5/s, with a trial of 1,000 first. {BY_PASSWORD}",),
        ),
        (
            Grant(12, "approve", 1, 10, 1),
            (f"lea approves R-12: 1 order at up to 0.01/s, with a trial of 1 first. {BY_PASSWORD}",),
        ),
        (
            Grant(12, "approve", 1, 5_000, 0),
            (f"lea approves R-12: 1 order at up to 5/s, without a trial. {BY_PASSWORD}",),
        ),
        (
            Grant(12, "approve", 2, 5_000, 0, (B, ("deadline", ""))),
            (
                f"lea approves R-12: 2 orders at up to 5/s, without a trial. {BY_PASSWORD}",
                "Left out: exhausted/http_503, deadline/-.",
            ),
        ),
        (
            Grant(12, "approve", 0, 5_000, 10, (A,)),
            (
                f"lea approves R-12: 0 orders at up to 5/s, with a trial of 10 first. {BY_PASSWORD}",
                "Left out: permanent/http_422.",
            ),
        ),
        (Grant(12, "reject", 1, 5_000, 10), (f"lea rejects R-12: 1 order stays in quarantine. {BY_PASSWORD}",)),
        (
            Grant(12, "reject", 1_000, 5_000, 10, (A,)),
            (f"lea rejects R-12: 1,000 orders stay in quarantine. {BY_PASSWORD}",),
        ),
    ],
)
def test_a_decision_is_recorded_in_these_sentences(grant, sentences):
    assert recorded_sentences(grant, "lea") == sentences


def test_the_sentences_are_said_through_a_catalog_and_its_comma():
    asked = []

    def ngettext(one, many, n):
        asked.append((one, many, n))
        return "%(n)s %(who)s"

    grant = Grant(12, "approve", 2_000, 5_000, 10, (A, B))
    found = recorded_sentences(grant, "lea", gettext=lambda text: f"<{text}>", ngettext=ngettext, comma="、")
    assert found == ("2,000 lea", "<Left out: permanent/http_422、exhausted/http_503.>")
    recorded_sentences(Grant(12, "approve", 3, 5_000, 0), "lea", ngettext=ngettext)
    recorded_sentences(Grant(12, "reject", 4, 5_000, 0), "lea", ngettext=ngettext)
    assert [n for _, _, n in asked] == [2_000, 3, 4]
    for one, many, _ in asked:
        assert ("order " in one, "orders " in one, "orders " in many) == (True, False, True)


AT_STAKE = {A: 30, B: 4, ("deadline", ""): 500}


@pytest.mark.parametrize(
    ("wish", "left_out", "grant"),
    [
        (Tightening(), (), Grant(12, "approve", 534, 5_000, 10, ())),
        (Tightening(2_500, 20, (A,)), (), Grant(12, "approve", 504, 2_500, 20, (A,))),
        (Tightening(left_out=(B, A)), [("x", ""), B], Grant(12, "approve", 500, 5_000, 10, (B, A, ("x", "")))),
        (Tightening(0, 0), (), Grant(12, "approve", 534, 0, 0, ())),
    ],
)
def test_an_approval_grants_what_the_round_has_but_for_the_wish(wish, left_out, grant):
    assert granted(wish, plan=12, rate_mj=5_000, canary=10, at_stake=AT_STAKE, left_out=left_out) == grant


@pytest.mark.parametrize(("canary", "round_", "least"), [(0, 0, 0), (0, 1, 10), (0, 2, 10), (7, 0, 7), (7, 1, 7)])
def test_a_round_after_one_without_a_trial_gets_one(canary, round_, least):
    assert least_trial(canary, round_) == least
