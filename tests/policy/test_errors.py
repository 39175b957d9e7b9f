"""What a caller may catch, and what each error carries."""

import pytest

from queue_app.policy import errors
from queue_app.policy.errors import BadAck, Permanent, Retryable, SnackOpsError

TYPED = {
    errors.InvalidOrder: ValueError, errors.InvalidNote: ValueError, errors.UnknownJob: LookupError,
    errors.Conflict: SnackOpsError, errors.NotDead: SnackOpsError, errors.NotAllowed: SnackOpsError,
    errors.Held: SnackOpsError, errors.QueueFull: SnackOpsError, errors.QueueClosed: SnackOpsError,
}  # fmt: skip


@pytest.mark.parametrize(("error", "base"), TYPED.items())
def test_a_refusal_is_one_sentence_kept_as_template_and_values(
    error: type[SnackOpsError], base: type[Exception]
) -> None:
    refused = error("The order %(job)s is 100%% full of %(what)s.", job="o1", what="nuts")
    assert str(refused) == "The order o1 is 100% full of nuts."
    assert refused.args == (str(refused),)
    assert (refused.template, refused.values) == (
        "The order %(job)s is 100%% full of %(what)s.",
        {"job": "o1", "what": "nuts"},
    )
    assert isinstance(refused, base)


def test_a_sentence_without_values_stands_as_it_is() -> None:
    refused = SnackOpsError("It is 100% full.")
    assert (str(refused), refused.template, refused.values) == ("It is 100% full.", "It is 100% full.", {})


ENDS = [
    (Retryable, ("http_503",), {"code": "http_503", "retry_after_ms": None}),
    (Retryable, ("http_503", 7), {"code": "http_503", "retry_after_ms": 7}),
    (Permanent, ("http_422",), {"code": "http_422"}),
    (BadAck, (), {"code": "bad_ack"}),
    (BadAck, ("wrong_id",), {"code": "wrong_id"}),
]


@pytest.mark.parametrize(("kind", "given", "held"), ENDS)
def test_an_end_of_a_delivery_carries_its_code(
    kind: type[Exception], given: tuple[object, ...], held: dict[str, object]
) -> None:
    error = kind(*given)
    assert vars(error) == held
    assert error.args == (held["code"],)
    assert not isinstance(error, SnackOpsError)
