"""What a lease and a result may carry."""

from typing import Any

import pytest

from queue_app.policy.attempts import Lease, Result, check_proof, check_result
from queue_app.policy.errors import InvalidOrder

NO_TOKEN = "The token must be a whole number as a lease carries it."


def result(**changes: Any) -> Result:
    return Result(**{"id": "a", "token": 1, "outcome": "retry", "code": "http_503", "retry_after_ms": 5, **changes})


def test_a_lease_gives_its_payload_anew_at_each_call() -> None:
    lease = Lease("a", "snacks", 1, '{"x":[1]}', 1, 1, 9, 99)
    lease.payload["x"].append(2)
    assert lease.payload == {"x": [1]}


@pytest.mark.parametrize("token", [0, 1, 2**63 - 1])
def test_any_token_that_a_lease_can_carry_is_taken(token: int) -> None:
    check_proof("a", token)
    assert check_result(result(token=token)) == result(token=token)


@pytest.mark.parametrize("token", [-1, 2**63, True, 1.0, "1", None])
def test_no_other_token_is_taken(token: object) -> None:
    for call in (lambda: check_proof("a", token), lambda: check_result(result(token=token))):
        with pytest.raises(ValueError) as refused:
            call()
        assert str(refused.value) == NO_TOKEN


@pytest.mark.parametrize("job_id", ["", "a b", None, 5])
def test_the_id_must_be_one(job_id: object) -> None:
    for call in (lambda: check_proof(job_id, 1), lambda: check_result(result(id=job_id))):
        with pytest.raises(InvalidOrder, match="The id"):
            call()


@pytest.mark.parametrize(
    "changes",
    [
        *({"outcome": outcome} for outcome in ("ok", "retry", "permanent")),
        *({"code": code} for code in ("", "a" * 48)),
        *({"retry_after_ms": wish} for wish in (None, 0, -5, 10**9)),
    ],
)
def test_a_result_that_says_something_comes_back_as_it_is(changes: dict[str, object]) -> None:
    assert check_result(result(**changes)) == result(**changes)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"outcome": "done"}, "The outcome 'done' is none of ok, retry, permanent."),
        ({"outcome": None}, "The outcome None is none of ok, retry, permanent."),
        ({"outcome": "\u00e9" * 50}, rf"The outcome '{r'\xe9' * 9}\xe is none of ok, retry, permanent."),
        ({"retry_after_ms": "5"}, "retry_after_ms must be a whole number of milliseconds or None."),
        ({"retry_after_ms": True}, "retry_after_ms must be a whole number of milliseconds or None."),
        ({"retry_after_ms": 1.5}, "retry_after_ms must be a whole number of milliseconds or None."),
        (
            {"code": "A"},
            "The code must be empty or 1 to 48 of a-z 0-9 _ and begin with a letter or digit, and this is 'A'.",
        ),
    ],
)
def test_a_result_that_nothing_can_be_done_with_is_refused(changes: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError) as refused:
        check_result(result(**changes))
    assert str(refused.value) == why


def test_a_result_needs_no_code_and_no_wish() -> None:
    assert Result("a", 1, "ok") == Result("a", 1, "ok", "", None)
