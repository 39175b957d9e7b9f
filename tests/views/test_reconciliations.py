"""The page "Receiver check" and its line on the overview."""

import html
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from queue_app.policy.reconciling import KINDS
from queue_app.services import reconciling
from queue_app.services.reconciling import Result
from tests.conftest import START_MS, Clock
from tests.views.pages import faults

pytestmark = pytest.mark.django_db

ADDRESS = "/receiver/"


def result(now_ms: int, **kinds: int) -> Result:
    """A comparison of 1,200 orders with two examples of each kind."""
    examples = tuple((kind, f"{kind.replace('_', '-')}-{n}") for kind in kinds for n in range(2))
    return Result(
        started_at_ms=now_ms - 2_000, ended_at_ms=now_ms, compared=1_200, differing=sum(kinds.values()), kinds=kinds,
        here={"done": 1_000, "pruned": 7, "done_pieces": 9_000, "dead": 150, "pending": 40, "leased": 3},
        there={"keys": 1_006, "stock": 8_999, "writes": 1_008, "requests": 2_000, "rows": 1_100},
        passing={"in_flight": 2, "forgotten": 5}, examples=examples,
    )  # fmt: skip


@pytest.fixture
def console(client: Client, operator: User, as_user: Callable[[Client, User], Client]) -> Client:
    return as_user(client, operator)


def test_before_the_first_comparison_it_says_how_to_make_one(console: Client, clock: Clock) -> None:
    page = console.get(ADDRESS).text
    assert "Nobody has compared yet" in page
    assert "manage.py reconcile" in page
    assert faults(page) == []
    assert f'<a href="{ADDRESS}">never</a>' in console.get("/").text


def test_every_kind_has_its_words_its_number_and_its_orders(console: Client, clock: Clock) -> None:
    reconciling.record(result(clock.now, **{kind.word: n for n, kind in enumerate(KINDS, 11)}, kind_of_tomorrow=99))
    page = html.unescape(console.get(ADDRESS).text)
    assert faults(page) == []
    places = [page.index(kind.label) for kind in KINDS]
    assert places == sorted(places), "not the gravest first"
    for n, kind in enumerate(KINDS, 11):
        assert kind.meaning in page
        assert f'class="num">{n}</td>' in page
    assert '<a class="id" href="/orders/no-effect-0/">no-effect-0</a>' in page
    assert '<span class="id">unknown-here-1</span>' in page  # there is no such order here
    assert "kind_of_tomorrow" in page
    for number in ("1,007", "9,000", "1,006", "8,999", "1,008", "2,000", "1,100"):
        assert f"<dd>{number}</dd>" in page
    assert "2 orders were being delivered just then" in page
    assert "5 delivered orders are older" in page


def test_both_the_page_and_the_overview_speak_of_the_last_one(console: Client, clock: Clock, auditor: User) -> None:
    reconciling.record(result(clock.now, quantity=3))
    clock.advance(60_000)
    reconciling.record(result(clock.now), auditor)
    page, overview = console.get(ADDRESS).text, console.get("/").text
    assert "Both sides agree" in page
    assert "3 differ" in page
    assert (page.index("ada"), page.index("a program")) == tuple(sorted((page.index("ada"), page.index("a program"))))
    assert "1,200 compared, no difference" in overview
    clock.advance(1_000)
    reconciling.record(result(clock.now, quantity=3, no_effect=1))
    assert "4 orders differ from what the receiver knows" in console.get(ADDRESS).text
    assert "4 of 1,200 differ" in console.get("/").text


def test_a_new_comparison_reaches_an_open_overview(console: Client, clock: Clock) -> None:
    seen = console.get("/").context["seen"]
    assert "HX-Reswap" in console.get(f"/live/?seen={seen}").headers
    reconciling.record(result(clock.now, quantity=3))
    assert "HX-Reswap" not in console.get(f"/live/?seen={seen}").headers


def test_more_comparisons_cost_no_more_queries(
    console: Client, clock: Clock, django_assert_max_num_queries: Any
) -> None:
    for n in range(30):
        clock.now = START_MS + n * 1_000
        reconciling.record(result(clock.now, quantity=3))
    with django_assert_max_num_queries(8):
        page = console.get(ADDRESS).text
    assert page.count("<tr>") == 2 + 1 + 20  # two heads, one kind, the last twenty
