"""Faults as values: which are accepted, and whom they hit."""

import json

import pytest

from queue_app.receiver.faults import check_faults, choose, read_faults

IDS = [f"o{order}-{line}" for order in range(1, 1001) for line in (1, 2)]


def rule(**fields):
    return check_faults([fields])[0]


def hit(fault, number=1):
    return {order_id for order_id in IDS if fault.fits(order_id, number)}


def test_a_listed_id_is_hit_every_time_and_no_other_id_ever():
    fault = rule(ids=["o1-1", "o2-1"], status=503)
    assert [hit(fault, number) for number in (1, 2, 50)] == [{"o1-1", "o2-1"}] * 3


def test_first_limits_a_fault_to_the_first_requests_of_an_id():
    fault = rule(ids=["a"], drop="after", first=2)
    assert [fault.fits("a", number) for number in (1, 2, 3, 4)] == [True, True, False, False]


def test_a_share_of_requests_hits_about_that_many_and_others_at_the_next_request():
    fault = rule(share=0.1, status=503)
    first, second = hit(fault, 1), hit(fault, 2)
    assert 140 <= len(first) <= 260
    assert first != second
    assert len(first & second) < 60


def test_a_share_for_good_hits_the_same_ids_at_every_request():
    fault = rule(share=0.1, status=422, for_good=True)
    assert 140 <= len(hit(fault, 1)) <= 260
    assert hit(fault, 1) == hit(fault, 2) == hit(fault, 999)


@pytest.mark.parametrize(("share", "expected"), [(0, 0), (1, len(IDS)), (0.0, 0), (1.0, len(IDS))])
def test_a_share_of_nothing_and_of_everything_is_exact(share, expected):
    assert len(hit(rule(share=share, status=503))) == expected


def test_a_larger_share_hits_the_ids_of_the_smaller_one_too():
    small, large = rule(share=0.05, status=503, for_good=True), rule(share=0.2, status=503, for_good=True)
    assert hit(small) < hit(large)


def test_faults_of_different_names_choose_independently():
    one, two = check_faults(
        [{"share": 0.3, "status": 422, "for_good": True}, {"share": 0.3, "status": 503, "for_good": True}]
    )
    assert 100 <= len(hit(one) & hit(two)) <= 260  # 9 % of 2,000, were they the same it would be 600


def test_the_choice_is_fixed_for_all_time():
    fault = rule(name="x", share=0.01, status=503, for_good=True)
    assert sorted(hit(fault))[:4] == ["o154-2", "o258-2", "o267-1", "o30-1"]


def test_the_first_fault_that_fits_wins():
    faults = check_faults([{"ids": ["a"], "status": 422}, {"share": 1, "status": 503}])
    assert [choose(faults, order_id, 1).status for order_id in ("a", "b")] == [422, 503]
    assert choose((), "a", 1) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"ids": ["a", "b"], "status": 503},
        {"share": 0.25, "status": 422, "for_good": True},
        {"share": 0, "delay_ms": 5},
        {"share": 1, "drop": "before", "first": 3, "name": "lost"},
        {"share": 0.5, "drop": "after", "delay_ms": 60_000},
    ],
    ids=str,
)
def test_a_fault_written_out_is_read_back_as_the_same(fields):
    fault = rule(**fields)
    assert check_faults([fault.as_json()]) == (fault,)
    assert json.loads(json.dumps(fault.as_json())) == fault.as_json()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"share": 1},
        {"status": 503},
        {"ids": ["a"]},
        {"ids": ["a"], "share": 1, "status": 503},
        {"ids": [], "status": 503},
        {"ids": "a", "status": 503},
        {"ids": ["a b"], "status": 503},
        {"ids": [1], "status": 503},
        {"ids": ["a"], "status": 503, "for_good": True},
        {"share": 1, "status": 503, "drop": "after"},
        {"share": 1, "drop": "during"},
        {"share": 1, "drop": ""},
        {"share": 1, "drop": None},
        {"share": 1, "drop": ["after"]},
        {"share": 1, "status": 200},
        {"share": 1, "status": 399},
        {"share": 1, "status": 600},
        {"share": 1, "status": True},
        {"share": 1, "status": "503"},
        {"share": 1, "status": 503.0},
        {"share": 1, "delay_ms": 0},
        {"share": 1, "delay_ms": -1},
        {"share": 1, "delay_ms": 60_001},
        {"share": -0.1, "status": 503},
        {"share": 1.0001, "status": 503},
        {"share": True, "status": 503},
        {"share": "0.5", "status": 503},
        {"share": float("nan"), "status": 503},
        {"share": float("inf"), "status": 503},
        {"share": 10**400, "status": 503},
        {"share": 1, "status": 503, "for_good": 1},
        {"share": 1, "status": 503, "first": 0},
        {"share": 1, "status": 503, "first": 1.5},
        {"share": 1, "status": 503, "name": ""},
        {"share": 1, "status": 503, "name": "a\nb"},
        {"share": 1, "status": 503, "name": "é"},
        {"share": 1, "status": 503, "name": 5},
        {"share": 1, "status": 503, "Status": 422},
    ],
    ids=lambda fields: str(fields)[:60],
)
def test_a_fault_that_makes_no_sense_is_refused_with_its_place(fields):
    with pytest.raises(ValueError, match=r"^Fault 2: .*\.$"):
        check_faults([{"ids": ["ok"], "status": 500}, fields])


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"faults": {}}', b'{"faults": [], "x": 1}', b'{"faults": [1]}'])
def test_a_document_of_another_form_is_refused(raw):
    with pytest.raises(ValueError, match=r"\.$"):
        read_faults(raw)


def test_two_faults_of_one_name_and_more_than_a_hundred_are_refused():
    same = {"share": 0.1, "status": 503}
    with pytest.raises(ValueError, match="same name"):
        check_faults([same, same])
    with pytest.raises(ValueError, match="at most 100"):
        check_faults([same | {"name": str(number)} for number in range(101)])
