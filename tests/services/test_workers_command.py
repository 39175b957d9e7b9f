"""`manage.py workers`: who works, and the same move and refusals as the service, in sentences and with exit statuses."""

import json
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from queue_app.models import AuditEvent, Process
from queue_app.services import life_signs, queue
from queue_app.services.life_signs import Work
from tests.conftest import Clock

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error."""
    out, err = StringIO(), StringIO()
    try:
        call_command("workers", *arguments, stdout=out, stderr=err)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def test_it_shows_who_works_and_what_each_holds(clock: Clock, team_lead: User) -> None:
    assert run("show") == (0, "Nobody has worked here within the last day.\n", "")
    life_signs.arrive("w1", "worker", "snacks", Work("h1", 4, 1_200, 7))
    life_signs.arrive("r1", "redriver")
    queue.enqueue("a", 1, now_ms=clock.now)
    queue.claim("w1", now_ms=clock.now)
    run("drain", "w1", "--as", "tom")
    assert run("show")[1].splitlines() == [
        "w1: worker of snacks on h1, alive, takes nothing new; holds 1; 1,200 ended, 7 no success",
        "r1: redriver, alive; holds 0; 0 ended, 0 no success",
    ]
    told = [json.loads(line) for line in run("show", "--json")[1].splitlines()]
    assert [(one["name"], one["draining"], one["held"]["n"]) for one in told] == [("w1", True, 1), ("r1", False, 0)]


def test_a_drain_says_what_stands_and_is_recorded_once(clock: Clock, team_lead: User) -> None:
    life_signs.arrive("w1", "worker", "snacks")
    said = [run("drain", "w1", "--as", "tom", "--note", "INC-1")]
    said.append(run("drain", "w1", "--as", "tom"))
    life_signs.leave("w1")
    said.append(run("drain", "w1", "--as", "tom"))
    assert said == [
        (0, f"The worker w1 {end}\n", "")
        for end in (
            "takes nothing new, finishes what it delivers, and ends.", "was told so already.", "has ended already.",
        )
    ]  # fmt: skip
    events = AuditEvent.objects.values_list("action", "name", "source", "proof", "note")
    assert list(events) == [("drain_worker", "tom", "cli", "shell", "INC-1")]


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["w1", "--as", "oda"], 1, "Only team leads may do this."),
        (["w2", "--as", "tom"], 1, "No worker w2 ever said that it lives."),
        (["a b", "--as", "tom"], 1, "No worker 'a b' ever said that it lives."),
        (["w1", "--as", "ghost"], 2, "There is no account 'ghost'."),
        (["w1", "--as", "tom", "--note", "a b"], 2, "The note must be"),
    ],
)
def test_a_refusal_is_one_sentence_and_changes_nothing(
    clock: Clock, team_lead: User, operator: User, arguments: list[str], status: int, sentence: str
) -> None:
    life_signs.arrive("w1", "worker", "snacks")
    got, said, why = run("drain", *arguments)
    assert (got, said, len(why.splitlines())) == (status, "", 1)
    assert sentence in why
    assert not Process.objects.filter(draining=True).exists()
