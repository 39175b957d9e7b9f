"""Every number on the overview is what a recount of the rows gives, and leads to exactly the rows that it counts."""

import html
import re
from collections import Counter
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from queue_app.policy.answers import effect_possible
from queue_app.services import looks, queue
from tests.conftest import Clock
from tests.reads.stories import accept, declare, deliver, die, exhaust, redrive
from tests.views.seen import matching, text_of

pytestmark = pytest.mark.django_db


def ask(sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """Rows of a query."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall()


@pytest.fixture
def busy(clock: Clock, operator: User, team_lead: User) -> Clock:
    """Two queues in every state, several causes, one looked at, redrives with each kind of end."""
    declare("drinks")
    die(clock, [f"s{n}" for n in range(9)])
    die(clock, ["x1", "x2"], "")
    die(clock, [f"d{n}" for n in range(4)], "timeout_read", at="drinks")
    clock.advance(2 * 3_600_000)
    looks.record(operator, "group", "INC-1", "cause_found", group=("snacks", "permanent", "http_422"))
    clock.advance(60_000)
    accept(["e1", "e2"], max_attempts=1)
    exhaust("e1")
    exhaust("e2")
    die(clock, ["t1"])
    redrive("s0", team_lead)
    deliver("s0")
    redrive("s1", team_lead)
    (lease,) = queue.claim("w")
    queue.finish("s1", lease.token, "permanent", code="http_422")
    redrive("s2", team_lead)
    (lease,) = queue.claim("w")
    queue.finish("s2", lease.token, "permanent", code="http_410")
    accept(["r1"])
    (lease,) = queue.claim("w")
    queue.finish("r1", lease.token, "retry", code="http_503")
    accept(["l1", "l2", "n1"], at="drinks")
    queue.claim("w-9", queue="drinks", limit=2)
    redrive("s3", team_lead)
    clock.advance(1)
    return clock


def bars(page: str, title: str) -> dict[str, tuple[int, int]]:
    """The bars under a title: word -> numerator and denominator."""
    part = page.split(f"<h3>{title}</h3>")[1].split("</ul>")[0]
    found = {}
    for item in re.findall(r"<li>(.*?)</li>", part, re.S):
        word, numbers = (text_of(each) for each in re.findall(r"<span>(.*?)</span>", item, re.S)[:2])
        part_n, whole = (int(n.replace(",", "")) for n in numbers.split(" (")[0].split(" / "))
        found[word] = (part_n, whole)
    return found


def test_states_queues_reasons_and_codes_are_those_of_the_table(busy: Clock, console: Client) -> None:
    page = console.get("/").text
    said = text_of(page)
    states = dict(ask("SELECT state, count(*) FROM jobs GROUP BY state"))
    dead, done = states["dead"], states["done"]
    assert f"{dead} orders are in quarantine and need a person" in said
    assert f"{done} of {sum(states.values())} delivered" in said
    assert "1 new, 1 retrying, 1 redriven" in said
    for name in ("snacks", "drinks"):
        here = dict(ask("SELECT state, count(*) FROM jobs WHERE queue = %s GROUP BY state", name))
        row = re.search(rf'<th scope="row" data-label="Queue">{name}.*?</tr>', page, re.S)
        assert row
        numbers = [int(n) for n in re.findall(r'class="num">(?:<a [^>]*>)?([\d,]+)<', row[0])]
        assert numbers == [here.get("pending", 0), here.get("leased", 0), here.get("done", 0), here["dead"], 0]
    words = {"permanent": "refused by receiver", "exhausted": "gave up after all tries"}
    rows = ask("SELECT reason, code FROM jobs WHERE state = 'dead'")
    assert bars(page, "Why they stopped") == {
        words[reason]: (n, dead) for reason, n in Counter(row[0] for row in rows).items()
    }
    assert bars(page, "By code") == {
        code or "no code": (n, dead) for code, n in Counter(row[1] for row in rows).items()
    }
    possible = sum(effect_possible(code) for _reason, code in rows)
    assert f"Of those in quarantine, {possible} may already have been delivered" in said


def test_every_linked_number_opens_a_list_of_that_many(busy: Clock, console: Client) -> None:
    page = console.get("/").text
    links = re.findall(r'<a(?: class="[^"]*")? href="(/quarantine/[^"]*)">([^<]*\d[^<]*)</a>', page)
    counted = 0
    for address, words in links:
        number = re.search(r"\d[\d,]*", words)
        assert number
        assert matching(console.get(html.unescape(address)).text) == int(number[0].replace(",", "")), (address, words)
        counted += 1
    assert counted >= 25  # causes, windows, bars, queues, needs, the quarantine itself


def test_windows_count_deaths_in_them(busy: Clock, console: Client) -> None:
    page = console.get("/").text.split('class="windows"')[1].split("</ul>")[0]
    shown = [[int(n) for n in re.findall(r">(?:of )?(\d+)(?: that died)?<", row)] for row in page.split("<li")[1:]]
    ends = [at for (at,) in ask("SELECT at_ms FROM redrives")]
    dead = [at for (at,) in ask("SELECT changed_at_ms FROM jobs WHERE state = 'dead'")]
    assert shown[0][0] == sum(at >= busy.now - 3_600_000 for at in dead)
    assert shown[-1] == [len(dead), len(dead) + len(ends)]


def test_the_bars_speak_of_the_window_that_was_asked_for(busy: Clock, console: Client) -> None:
    page = console.get("/", {"window": "1h"}).text
    since = busy.now - 3_600_000 - busy.now % 60_000
    late = ask("SELECT reason, code FROM jobs WHERE state = 'dead' AND changed_at_ms >= %s", since)
    everything = ask("SELECT count(*) FROM jobs WHERE state = 'dead'")[0][0]
    assert 0 < len(late) < everything
    assert bars(page, "By code") == {code: (n, len(late)) for code, n in Counter(row[1] for row in late).items()}
    assert 'aria-current="true">1 hour<' in page
    assert "/live/?window=1h&amp;seen=" in page  # and goes on so while it lives
    assert bars(console.get("/", {"window": "<b>"}).text, "By code") == bars(console.get("/").text, "By code")


def test_results_of_redrives_are_those_of_the_rows(busy: Clock, console: Client) -> None:
    said = text_of(console.get("/").text)
    assert "Redriven 4 Delivered 1 (25%)" in said
    assert "Back in quarantine for the same cause 1 Back in quarantine for another cause 1 Not ended yet 1" in said


def test_the_last_look_and_what_died_since_are_told(busy: Clock, console: Client) -> None:
    said = text_of(console.get("/").text)
    since = ask("SELECT count(*) FROM jobs, investigations WHERE state = 'dead' AND changed_at_ms >= as_of_ms")[0][0]
    assert f"oda · INC-1 · 2027-01-15 10:00:15 UTC {since} died since" in said


def test_an_empty_place_has_no_ratios_and_says_what_to_do(clock: Clock, console: Client) -> None:
    said = text_of(console.get("/").text)
    assert "No order was accepted yet" in said
    assert "0 of 0 delivered (none)" in said
    assert "0%" not in said


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("en", ["1 order is in quarantine and needs a person", "2 orders are in quarantine and need a person"]),
        ("ja", ["1 件の注文が隔離中で、人の対応が必要です", "2 件の注文が隔離中で、人の対応が必要です"]),
        ("zh-hans", ["1 个订单处于隔离中，需要人工处理", "2 个订单处于隔离中，需要人工处理"]),
    ],
)
def test_one_and_two_are_said_rightly(clock: Clock, console: Client, language: str, sentences: list[str]) -> None:
    for n, sentence in enumerate(sentences, 1):
        die(clock, [f"a{n}"])
        assert sentence in text_of(console.get("/", headers={"Accept-Language": language}).text)


def test_an_unchanged_overview_is_one_line(busy: Clock, console: Client) -> None:
    page = console.get("/").text
    seen = page.split("/live/?window=all&amp;seen=")[1].split('"')[0]
    assert len(console.get("/live/", {"seen": seen}).content) < 600
    accept(["new"])
    assert 'id="overview-live"' in console.get("/live/", {"seen": seen}).text
