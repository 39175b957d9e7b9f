"""What nobody can mean, or may not do, when asking for a redrive: a sentence, the input kept, nothing written."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from queue_app.models import Plan
from tests.conftest import Clock
from tests.redrive import story
from tests.views.asking import ask, look, said, sql

pytestmark = pytest.mark.django_db
SignIn = Callable[[Client, User], Client]


@pytest.fixture
def page(client: Client, operator: User, as_user: SignIn, clock: Clock) -> Client:
    """Oda's browser."""
    return as_user(client, operator)


NUMBERS = (
    "0",
    "-1",
    "1e9",
    "NaN",
    "inf",
    "1,5",
    "1" + "0" * 400,
    "\u0661",
    "1_0",
    "+1",
    " ",
    "\0",
    "<b>",
    "None",
    "true",
)
HOSTILE = {
    "rate": (*NUMBERS[:8], "0.001", "20000.001", "20001", "1.0000", ".5", "1."),
    "cap": (*NUMBERS[:8], "1.0", "100000001"),
    "canary": ("-1", "1e9", "NaN", "1.5", "1001", "1" + "0" * 400, "\u0661"),
    "stop": ("0", "0.0", "-1", "100.1", "1.0001", "101", "50%", "NaN", "1,5"),
    "canary_wait": ("0s", "10", "2d", "-1s", "1w", "10 m", "m", "9999999d", "NaN"),
    "steps": (
        "5",
        "5x",
        "x60",
        "5x0",
        "0x60",
        "100x60",
        "5x86401",
        "5x60;",
        "5x60,,",
        ",".join(["1x1"] * 11),
        "1..2x5",
    ),
    "max_dead": ("0s", "3651d", "7", "-1d", "10**9d", "NaN"),
    "max_attempts": ("0", "-1", "101", "1.0", "NaN", "1" + "0" * 400),
    "budget": ("0s", "31d", "1", "forever", "NaN"),
    "preset": ("reckless", "Normal", "\0"),
    "note": (
        "",
        "x" * 65,
        "a b",
        "ok\nINFO forged",
        "-a",
        "/a",
        "\u0430pproved",
        "a\u202e",
        "=1+1",
        "{{7*7}}",
        "%s",
        "a\0",
    ),
    "comment": ("x" * 2_001, "a\x1b[31m", "a\u202eb", "a\0"),
    "form_key": ("", "short", "x" * 65, "k" * 31 + " ", "\u043a" * 20, "'; DROP TABLE plans; --"),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in HOSTILE.items() for value in values])
def test_what_cannot_be_meant_is_refused_with_a_sentence_and_writes_nothing(
    name: str, value: str, page: Client, clock: Clock
) -> None:
    story.die(200)
    answer = ask(page, **{name: value})
    assert answer.status_code == 422
    assert not Plan.objects.exists()
    assert "Nothing was asked for yet" in said(answer)
    form = answer.context["form"]
    assert form.errors[name if name in form.fields else "__all__"]
    kept = answer.context["form"].data.get("note")
    assert kept == (value if name == "note" else "INC-1")


@pytest.mark.parametrize(
    ("name", "typed", "offered"),
    [
        ("rate", "２.５", "2.5"),
        ("cap", "１００", "100"),
        ("canary", "１０", "10"),
        ("stop", "５０", "50"),
        ("canary_wait", "９０ｓ", "90s"),
        ("steps", "５ｘ６０，２０ｘ３００", "5x60,20x300"),
        ("budget", "１２ｈ", "12h"),
        ("note", "ＩＮＣ－２０４１", "INC-2041"),
    ],
)
def test_full_width_input_is_refused_with_its_half_width_form(
    name: str, typed: str, offered: str, page: Client, clock: Clock
) -> None:
    story.die(3)
    answer = ask(page, **{name: typed})
    assert answer.status_code == 422
    assert offered in " ".join(answer.context["form"].errors[name])
    assert typed in answer.content.decode()
    assert not Plan.objects.exists()


def test_a_field_given_twice_is_a_guess_and_refused(page: Client, clock: Clock) -> None:
    story.die(3)
    assert ask(page, rate=["1", "5"]).status_code == 422
    assert ask(page, note=["INC-1", "INC-2"]).status_code == 422
    assert ask(page, queue=["snacks", "drinks"]).status_code == 400
    assert not Plan.objects.exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"requested_by": "2"},
        {"approved_by": "2"},
        {"state": "approved"},
        {"digest": "0" * 64},
        {"queue": "nowhere"},
        {"queue": None, "ids": " ".join(f"o{k}" for k in range(1_001))},
        {"ids": "o1"},
        {"queue": None, "ids": "a\0b"},
        {"queue": None, "ids": "<script>"},
    ],
    ids=lambda fields: next(name for name in reversed(fields)),
)
def test_forged_and_foreign_fields_are_refused_before_anything(
    fields: dict[str, Any], page: Client, clock: Clock
) -> None:
    story.die(3)
    assert ask(page, **fields).status_code == 400
    assert not Plan.objects.exists()


def test_a_thousand_ticked_orders_pass_in_one_field(page: Client, clock: Clock) -> None:
    ids = story.die(1_000)
    assert ask(page, queue=None, ids=" ".join(ids)).status_code == 302
    assert Plan.objects.get().planned == 1_000


def test_a_choice_that_is_empty_by_now_asks_for_nothing(page: Client, clock: Clock) -> None:
    story.die(1)
    assert "There is nothing to redrive" in said(look(page, queue="snacks", code="http_418"))
    answer = ask(page, code="http_418")
    assert answer.status_code == 422
    assert not Plan.objects.exists()


def test_an_auditor_reads_the_figures_and_a_sentence_and_cannot_ask(
    client: Client, auditor: User, as_user: SignIn, clock: Clock
) -> None:
    story.die(3)
    page = as_user(client, auditor)
    answer = look(page, queue="snacks")
    assert "Only operators and team leads ask for redrives." in said(answer)
    assert 'name="form_key"' not in answer.content.decode()
    assert ask(page).status_code == 403
    assert ask(page, note="").status_code == 403
    assert not Plan.objects.exists()
    assert sql("SELECT count(*) FROM audit WHERE action = 'refused' AND target = 'plan:new'") == [(2,)]


def test_nobody_without_a_role_or_a_session_or_the_token_gets_in(
    client: Client, operator: User, as_user: SignIn, clock: Clock
) -> None:
    story.die(1)
    assert ask(client).status_code == 302
    assert as_user(client, User.objects.create_user("nobody")).get(reverse("redrive_new")).status_code == 403
    strict = as_user(Client(enforce_csrf_checks=True), operator)
    assert ask(strict).status_code == 403
    User.objects.filter(pk=operator.pk).update(is_active=False)
    assert look(as_user(client, operator), queue="snacks").status_code == 302
    assert not Plan.objects.exists()
