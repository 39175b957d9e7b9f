"""`manage.py queue`: the same moves and refusals as the service, in sentences and with exit statuses."""

import json
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from queue_app.models import AuditEvent, Queue
from queue_app.services import queue

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error."""
    out, err = StringIO(), StringIO()
    try:
        call_command("queue", *arguments, stdout=out, stderr=err)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


@pytest.mark.parametrize(
    ("part", "sentence", "after"),
    [
        ("close", "The queue snacks is closed: it takes no new orders.", (False, False)),
        ("pause", "What has begun ends by itself.", (True, True)),
        ("cancel", "What was already sent is not recalled.", (False, True)),
        ("reopen", "The queue snacks takes orders. It stood so already.", (True, False)),
        ("resume", "The queue snacks hands out orders. It stood so already.", (True, False)),
    ],
)
def test_a_move_says_what_stands_and_is_recorded(
    team_lead: User, part: str, sentence: str, after: tuple[bool, bool]
) -> None:
    status, said, _ = run(part, "snacks", "--as", "tom", "--note", "INC-1")
    assert (status, said.splitlines()[0][-len(sentence) :]) == (0, sentence)
    assert Queue.objects.values_list("accepting", "paused").get(pk="snacks") == after
    events = AuditEvent.objects.values_list("name", "source", "proof", "note")
    assert set(events) == ({("tom", "cli", "shell", "INC-1")} if after != (True, False) else set())


def test_limits_are_set_by_name_and_taken_away_by_none(team_lead: User) -> None:
    run("limit", "snacks", "--as", "tom", "--max-unfinished", "10", "--breaker-after", "0")
    status, said, _ = run("limit", "snacks", "--as", "tom", "--max-unfinished", "none", "--json")
    assert status == 0
    assert json.loads(said)["policy"]["max_unfinished"] is None
    assert json.loads(said)["policy"]["breaker_after"] == 0


def test_show_tells_settings_and_how_the_orders_stand() -> None:
    queue.enqueue("a", 1)
    status, said, _ = run("show", "snacks")
    assert status == 0
    assert said.splitlines()[:2] == [
        "snacks: accepts orders, hands out",
        "orders: 0 delivered, 0 in quarantine, 1 unfinished",
    ]
    assert "max_unfinished none" in said


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["show", "nope"], 1, "No queue nope is declared."),
        (["show", "No"], 2, "The queue must be"),
        (["close", "nope", "--as", "tom"], 1, "No queue nope is declared."),
        (["close", "snacks", "--as", "oda"], 1, "Only team leads may do this."),
        (["close", "snacks", "--as", "ghost"], 2, "There is no account 'ghost'."),
        (["close", "snacks", "--as", "tom", "--note", "a b"], 2, "The note must be"),
        (["limit", "snacks", "--as", "tom", "--max-unfinished", "-1"], 2, "must be a whole number"),
        (["limit", "snacks", "--as", "tom", "--breaker-after", "none"], 2, "must be a whole number"),
        (["limit", "snacks", "--as", "tom", "--delivery-rate-mj", "٣"], 2, "must be a whole number"),
    ],
)
def test_a_refusal_is_one_sentence_and_changes_nothing(
    team_lead: User, operator: User, arguments: list[str], status: int, sentence: str
) -> None:
    before = Queue.objects.values().get(pk="snacks")
    got, said, why = run(*arguments)
    assert (got, said) == (status, "")
    assert sentence in why
    assert len(why.splitlines()) == 1
    assert Queue.objects.values().get(pk="snacks") == before
