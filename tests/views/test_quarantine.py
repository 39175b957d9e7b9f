"""The list of the quarantine: one number everywhere, rows once, words instead of values, and what a role may do."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from queue_app.policy.filters import Filter
from queue_app.services import looks, queue
from tests.conftest import START_MS, Clock
from tests.dead_rows import bury
from tests.reads.stories import declare, deliver, die, redrive
from tests.reads.test_dead import FILTERS, _recount
from tests.views.seen import exported, link_of, matching, rows_of, text_of

pytestmark = pytest.mark.django_db
LIST = "/quarantine/"


@pytest.mark.parametrize("wanted", FILTERS, ids=lambda wanted: wanted.canonical())
def test_one_number_in_the_list_its_rows_the_file_and_the_form(mixed: Clock, console: Client, wanted: Filter) -> None:
    query = urlencode(wanted.query())
    page = console.get(f"{LIST}?{query}&size=200").text
    expected = _recount(wanted, mixed.now + 1)
    assert matching(page) == len(expected)
    assert rows_of(page) == expected
    assert exported(console, wanted.query()) == expected
    form = text_of(console.get(f"{reverse('investigation_new')}?{query}").text)
    if not (wanted.queue and wanted.reason and wanted.code):
        assert f"About {len(expected)} order" in form


def test_the_card_the_group_and_the_list_agree_under_two_queues(clock: Clock, console: Client) -> None:
    declare("drinks")
    die(clock, [f"s{n}" for n in range(30)])
    die(clock, [f"d{n}" for n in range(7)], at="drinks")
    die(clock, [f"e{n}" for n in range(5)], "http_410", at="drinks")
    for group, n in ((("snacks", "permanent", "http_422"), 30), (("drinks", "permanent", "http_422"), 7)):
        wanted = Filter(*group)
        address = f"{LIST}?{urlencode(wanted.query())}"
        assert f'href="{address.replace("&", "&amp;")}">{n}</a> / 42' in console.get(reverse("overview")).text
        assert f'href="{address.replace("&", "&amp;")}">{n}</a> / 42' in console.get(reverse("group_list")).text
        assert f">{n}</a>" in console.get(reverse("group", args=group)).text
        assert matching(console.get(address).text) == n
        assert len(exported(console, wanted.query())) == n


@pytest.fixture
def crowd(clock: Clock, db: None) -> Clock:
    """250 orders that died in only three milliseconds."""
    queue.enqueue_many({"id": f"c{n}", "quantity": 1} for n in range(250))
    for at_ms, n in ((0, 100), (1, 100), (2, 50)):
        clock.now = START_MS + at_ms
        for lease in queue.claim("worker-1", limit=n):
            queue.finish(lease.id, lease.token, "permanent", code="http_422")
    clock.advance(1_000)
    return clock


@pytest.mark.parametrize("sort", ["oldest", "newest"])
def test_pages_of_crowded_milliseconds_meet_each_order_once_while_some_leave(
    crowd: Clock, console: Client, team_lead: User, sort: str
) -> None:
    met: list[str] = []
    gone: set[str] = set()
    query: str | None = f"?queue=snacks&sort={sort}&size=20"
    while query:
        page = console.get(f"{LIST}{query}").text
        ids = rows_of(page)
        met += ids
        leaves = ids[-1]  # the row that the cursor to the next page points at
        redrive(leaves, team_lead)
        deliver(leaves)
        gone.add(leaves)
        crowd.advance(1)
        die(crowd, [f"late-{len(met)}"])  # and others die meanwhile
        query = link_of(page, "next")
    assert len(met) == len(set(met)) == 250
    assert not {job_id for job_id in met if job_id.startswith("late")}
    back, query = [], link_of(page, "prev")
    while query:
        page = console.get(f"{LIST}{query}").text
        back += rows_of(page)
        query = link_of(page, "prev")
    assert len(back) == len(set(back))
    assert set(back) <= set(met) - gone


def test_newer_orders_are_offered_and_never_pushed_into_the_list(clock: Clock, console: Client) -> None:
    die(clock, ["a1", "a2"])
    page = console.get(f"{LIST}?queue=snacks&size=25").text
    as_of = clock.now + 1
    fragment = f"{reverse('quarantine_newer')}?queue=snacks&sort=oldest&size=25&as_of={as_of}"
    assert f"as_of={as_of}&amp;seen=0" in page
    assert console.get(f"{fragment}&seen=0").status_code == 204
    clock.advance(10)
    die(clock, ["b1", "b2", "b3"])
    said = console.get(f"{fragment}&seen=0")
    assert "3 newer, show" in said.text
    assert f'href="{LIST}?queue=snacks&amp;sort=oldest&amp;size=25"' in said.text
    assert console.get(f"{fragment}&seen=3").status_code == 204
    assert rows_of(console.get(f"{LIST}?queue=snacks").text) == ["a1", "a2", "b1", "b2", "b3"]


def test_nobody_asks_for_newer_ones_when_none_can_match(clock: Clock, console: Client) -> None:
    die(clock, ["a1"])
    assert "data-poll" in console.get(LIST).text
    assert "data-poll" not in console.get(f"{LIST}?died_to={clock.now}").text
    assert "data-poll" not in console.get(f"{LIST}?min_age=1h").text


def test_chips_say_the_filter_in_words_and_take_each_part_away(clock: Clock, console: Client) -> None:
    die(clock, ["a1"])
    page = console.get(
        f"{LIST}?reason=exhausted&code=-&looked=no&redriven=yes&min_age=2h&max_age=90s&died_from={START_MS}"
    )
    assert page.status_code == 400  # the greatest age is below the smallest
    page = console.get(
        f"{LIST}?reason=exhausted&code=-&looked=no&redriven=yes&min_age=90s&max_age=2h&died_from={START_MS}"
    )
    said = text_of(page.text)
    for chip in (
        "Why it stopped: gave up after all tries",
        "Code: no code",
        "Looked at: no",
        "Redriven before: yes",
        "In quarantine for at least: 90s",
        "In quarantine for at most: 2 h",
        "Died from: 2027-01-15 08:00:00 UTC",
    ):
        assert chip in said
    assert 'name="died_from" value="2027-01-15T08:00"' in page.text
    assert (
        'href="?reason=exhausted&amp;died_from=1800000000000&amp;min_age=90s&amp;max_age=2h&amp;redriven=yes&amp;looked=no"'
        in page.text
    )


def test_a_person_chooses_how_many_orders_a_page_has(clock: Clock, console: Client) -> None:
    die(clock, [f"a{n}" for n in range(30)])
    page = console.get(f"{LIST}?queue=snacks&sort=newest&size=25").text
    assert len(rows_of(page)) == 25
    assert 'href="?queue=snacks&amp;sort=newest&amp;size=100"' in page
    assert '<a href="?queue=snacks&amp;sort=newest&amp;size=25" aria-current="true">25</a>' in page


def test_rows_can_be_ticked_by_those_who_may_ask_for_a_redrive(
    clock: Clock, console: Client, auditor_console: Client
) -> None:
    die(clock, ["a1", "a2"])
    page = console.get(LIST).text
    assert f'<form method="post" action="{reverse("redrive_new")}"' in page
    assert page.count('name="ids" value="a') == 2
    assert page.count('aria-label="Tick order a') == 2
    assert 'data-check-all="ids"' in page
    assert "data-checked-count" in page
    read_only = auditor_console.get(LIST).text
    assert "Only operators and team leads ask for redrives and record investigations." in read_only
    assert 'name="ids"' not in read_only


def test_a_redrive_of_all_needs_one_queue_and_a_sentence_says_so(clock: Clock, console: Client) -> None:
    die(clock, ["a1", "a2"])
    assert f'href="{reverse("redrive_new")}?queue=snacks"' in console.get(LIST).text  # there is only one
    declare("drinks")
    assert "choose the queue in the filter" in console.get(LIST).text
    assert "Ask for a redrive of all 2" in text_of(console.get(f"{LIST}?queue=snacks").text)


COUNTS = {
    "en": ["0 orders match", "1 order matches", "2 orders match"],
    "ja": ["0 件の注文が一致", "1 件の注文が一致", "2 件の注文が一致"],
    "zh-hans": ["0 个订单符合", "1 个订单符合", "2 个订单符合"],
}


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("language", sorted(COUNTS))
def test_counts_are_said_rightly_in_three_languages(clock: Clock, console: Client, language: str, n: int) -> None:
    die(clock, [f"a{k}" for k in range(n)])
    page = console.get(LIST, headers={"Accept-Language": language})
    assert COUNTS[language][n] in page.text


@pytest.mark.parametrize("language", ["de", "ar", "tr", "de-x-zzzz,*;q=9"])
@pytest.mark.parametrize(
    "name", ["overview", "quarantine_list", "group_list", "investigation_list", "investigation_new"]
)
def test_other_languages_fall_back_to_whole_english_pages(
    clock: Clock, console: Client, language: str, name: str
) -> None:
    die(clock, ["a1", "a2"])
    answer = console.get(reverse(name), headers={"Accept-Language": language})
    assert '<html lang="en"' in answer.text
    assert answer["Content-Language"] == "en"
    assert 'dir="rtl"' not in answer.text


def _asked(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as asked:
        assert client.get(address).status_code == 200
    return len(asked)


@pytest.mark.parametrize(
    ("name", "arguments", "query"),
    [
        ("overview", (), ""),
        ("quarantine_list", (), "?size=200"),
        ("quarantine_list", (), "?size=200&queue=snacks&looked=no"),
        ("quarantine_newer", (), "?as_of=1"),
        ("group_list", (), ""),
        ("group", ("snacks", "exhausted", "http_503"), ""),
        ("investigation_list", (), ""),
        ("investigation_new", (), "?queue=snacks"),
        ("job", ("o0-1",), ""),
    ],
)
def test_the_number_of_queries_does_not_grow_with_rows(
    clock: Clock, console: Client, operator: User, name: str, arguments: tuple[Any, ...], query: str
) -> None:
    declare("drinks")
    bury(12, now_ms=clock.now)
    looks.record(operator, "filter", "INC-1", "looking", filter=Filter(queue="snacks"))
    address = reverse(name, args=arguments) + query
    few = _asked(console, address)
    bury(300, now_ms=clock.now, first=1_000)
    causes = [("snacks", "exhausted", f"http_5{n:02}") for n in range(25)]
    bury(75, now_ms=clock.now, first=5_000, groups=causes)
    clock.advance(10)
    for cause in causes[:5]:
        looks.record(operator, "group", "INC-2", "looking", group=cause)
    looks.record(operator, "filter", "INC-3", "looking", filter=Filter(queue="snacks"))
    looks.record(operator, "job", "INC-4", "looking", job_id="o5000-1")
    assert _asked(console, address) <= few
