"""The worker's command line: settings that cannot work are refused, and the end is told in a sentence."""

from io import StringIO

import pytest
from django.core.management import call_command

from queue_app.management.commands import worker as command
from queue_app.models import Queue
from queue_app.policy.errors import Permanent
from queue_app.services import queue
from queue_app.services.leases import Lease

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--queue", "nope"], "No queue 'nope' is declared."),
        (["--lease-ms", "10000"], "must be below the lease"),
        (["--lease-ms", "-5"], "must be below the lease"),
        (["--prefetch", "-1"], "--prefetch must be"),
        (["--prefetch", "1001"], "--prefetch must be"),
        (["--concurrency", "0"], "--concurrency must be"),
        (["--concurrency", "257"], "--concurrency must be"),
        (["--owner", "a b"], "name"),
        (["--drain-s", "-1"], "--drain-s must be"),
        (["--drain-s", "nan"], "--drain-s must be"),
    ],
)
def test_settings_that_cannot_work_are_refused_with_a_sentence(options: list[str], sentence: str) -> None:
    said = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("worker", *options, stderr=said)
    assert ended.value.code == 2
    assert sentence in said.getvalue()


def test_a_receiver_that_forgets_too_early_is_refused() -> None:
    Queue.objects.filter(pk="snacks").update(receiver_keeps_ms=31 * 86_400_000)
    said = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("worker", stderr=said)
    assert ended.value.code == 2
    assert "takes an order that is sent again for a new one" in said.getvalue()


def test_the_end_says_how_many_ended_how_and_that_closed_is_not_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    queue.enqueue_many([{"id": f"c-{n}", "quantity": 1} for n in range(3)])
    Queue.objects.update(accepting=False)

    class Receiver:
        """Refuses one order."""

        def __init__(self, *_arguments: object, **_limits: object) -> None: ...

        def __enter__(self) -> "Receiver":
            return self

        def __exit__(self, *_what: object) -> None: ...

        def __call__(self, lease: Lease) -> bool:
            if lease.id == "c-1":
                raise Permanent("http_422")
            return True

    monkeypatch.setattr(command, "HttpDelivery", Receiver)
    monkeypatch.setattr(command.signal, "signal", lambda *_what: None)
    said = StringIO()
    call_command("worker", "--until-empty", stdout=said)
    assert said.getvalue().splitlines() == [
        "3 tries ended: 2 delivered, 0 to be tried again or given up, 1 refused by the receiver, 0 with an unknown answer, "
        "0 too late; 0 given back unbegun, 0 left to their leases.",
        "The queue snacks as of now: 2 delivered, 1 in quarantine (1 permanent), 0 unfinished; it does not accept orders.",
    ]
