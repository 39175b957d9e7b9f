"""How long each page takes on the server at 100,000 dead orders, and what its first load weighs.

`pytest tests/bench/bench_pages.py -s` prints a table and fails when a page misses a bar: 60 ms (median), and 80 kB on the
wire for a first load with everything it brings. Not collected by a plain run. Times are those of the machine at hand.
The bar is held against the processor's time, because the time that passed also tells how busy a shared machine is.
"""

import os
import re
import statistics
import time
from dataclasses import dataclass
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import NoReverseMatch, URLPattern, URLResolver, get_resolver, reverse

from queue_app.policy.cursors import Cursor
from queue_app.policy.filters import Filter
from queue_app.policy.queues import QueuePolicy
from queue_app.policy.selections import by_filter
from queue_app.policy.windows import DAY_MS
from queue_app.store import queues
from tests.conftest import Clock
from tests.dead_rows import bury, finish
from tests.redrive import story

DEAD = int(os.environ.get("BENCH_DEAD", "100000"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "21"))
MEDIAN_MS, FIRST_LOAD_BYTES = 60, 80_000
NO_PAGES = re.compile(
    r"redrive_move|queue_move|queue_limits|job_unblock|livez|readyz|sign_out|language|theme|.*export|saved_filter.*|.*presence|.*_payload"
)
ASSET = re.compile(r'(?:<link[^>]+href|<script[^>]+src|<img[^>]+src)="([^"]+)"')
BIG = {"queue": "snacks", "reason": "exhausted", "code": "http_503"}


@dataclass(frozen=True)
class Cost:
    """What one address costs: ms on the server (passed, and of the processor), queries, bytes of the first load."""

    median_ms: float
    p95_ms: float
    processor_ms: float
    queries: int
    first_load: int


def deep(now_ms: int, wanted: Filter, sort: str = "oldest") -> str:
    """The query of a page in the middle of the list."""
    middle = now_ms - 3 * DAY_MS - DAY_MS // 2
    cursor = Cursor(wanted.digest(), sort, back=False, as_of_ms=now_ms, at_ms=middle, seq=10**9 + DEAD // 2)
    return urlencode([*wanted.query(), ("cursor", cursor.encode())])


def rows(now_ms: int, plan: int) -> list[tuple[str, str, tuple[object, ...], str]]:
    """(what, url name, arguments, query) of everything measured."""
    listed = {
        "everything": "",
        "200 rows": "size=200",
        "newest first": "sort=newest",
        "one queue": "queue=snacks",
        "one cause": urlencode(BIG),
        "a code in two queues": "code=http_503",
        "died in three days": f"died_from={now_ms - 3 * DAY_MS - 12_345}",
        "beginning of an id": "id=o99",
        "one id": "id=o4242-1",
        "redriven before": "redriven=yes",
        "many attempts": "attempts_min=50",
        "not looked at": "looked=no",
        "deep": deep(now_ms, Filter()),
        "deep, newest first": deep(now_ms, Filter(), "newest"),
        "deep in one cause": deep(now_ms, Filter(**BIG)),
        "deep, redriven before": deep(now_ms, Filter(redriven=True)),
    }
    return [
        ("sign-in page", "sign_in", (), ""),
        ("preferences", "preferences", (), ""),
        ("password", "password_change", (), ""),
        ("overview", "overview", (), ""),
        ("overview, living part", "overview_live", (), ""),
        *((f"quarantine: {name}", "quarantine_list", (), query) for name, query in listed.items()),
        ("quarantine: newer", "quarantine_newer", (), f"as_of={now_ms - 60_000}"),
        ("causes", "group_list", (), ""),
        ("one cause", "group", ("snacks", "exhausted", "http_503"), ""),
        ("one cause without a code", "group", ("drinks", "permanent", "-"), ""),
        ("investigations", "investigation_list", (), ""),
        ("new investigation of a cause", "investigation_new", (), urlencode(BIG)),
        ("orders that wait", "order_list", (), "state=pending"),
        ("orders delivered", "order_list", (), "state=done"),
        ("orders by id", "order_list", (), "id=b"),
        ("order", "job", ("o4242-1",), ""),
        ("order, come from a filter", "job", ("o4242-1",), "queue=snacks"),
        ("redrives", "redrive_list", (), ""),
        ("ask for a redrive", "redrive_new", (), urlencode(BIG)),
        ("redrive with a long list", "redrive", (plan,), ""),
        ("redrive, living part", "redrive_live", (plan,), ""),
        ("redrive: its orders", "redrive_items", (plan,), ""),
        ("redrive: decide", "redrive_decide", (plan,), ""),
        ("receiver check", "reconciliations", (), ""),
        ("workers", "process_list", (), ""),
        ("workers, living part", "process_live", (), ""),
        ("queues", "queue_list", (), ""),
        ("audit", "audit_list", (), ""),
        ("audit: one event", "audit_event", (1,), ""),
        ("audit: one person", "audit_list", (), "who=tom"),
    ]


def names(patterns: list[URLPattern | URLResolver]) -> set[str]:
    """All names of the urlconf."""
    found: set[str] = set()
    for pattern in patterns:
        found |= names(pattern.url_patterns) if isinstance(pattern, URLResolver) else {str(pattern.name)}
    return found


def size_of(client: Client, address: str, **headers: str) -> tuple[int, str]:
    """Bytes on the wire, and the text when it was not compressed."""
    answer = client.get(address, headers=headers)
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    answer.close()
    assert answer.status_code == 200, (address, answer.status_code, body[:500])
    return len(body), "" if "Content-Encoding" in answer else body.decode()


def cost(client: Client, address: str) -> Cost:
    """Measure one address: a warm server, with everything between the request and the last byte of the page."""
    with CaptureQueriesContext(connection) as queries:
        _size, text = size_of(client, address)
        asked = len(queries)  # the next request clears the log
    times, worked = [], []
    for _round in range(ROUNDS):
        start, start_cpu = time.perf_counter(), time.process_time()
        size_of(client, address)
        times.append((time.perf_counter() - start) * 1_000)
        worked.append((time.process_time() - start_cpu) * 1_000)
    packed = {"Accept-Encoding": "gzip"}
    weight = sum(size_of(client, one, **packed)[0] for one in {address, *ASSET.findall(text)})
    p95 = sorted(times)[int(ROUNDS * 0.95)]
    return Cost(statistics.median(times), p95, statistics.median(worked), asked, weight)


@pytest.mark.timeout(900)
@pytest.mark.django_db(transaction=True)
def test_print_the_table(clock: Clock, operator: User, team_lead: User) -> None:
    queues.declare(QueuePolicy("drinks"))
    bury(DEAD, now_ms=clock.now)
    finish(DEAD // 10, now_ms=clock.now, first=500_000)
    plan = story.frozen(story.ask(operator, by_filter(Filter(**BIG))))
    signed_in = Client()
    signed_in.force_login(team_lead)
    print(
        f"\n{DEAD:,} dead orders{'':27}{'median ms':>10}{'p95 ms':>9}{'CPU ms':>9}{'queries':>9}{'first load, B':>15}"
    )
    known, measured, missed = names(get_resolver().url_patterns), set(), []
    for what, name, arguments, query in rows(clock.now, plan.pk):
        try:
            address = reverse(name, args=arguments) + (f"?{query}" if query else "")
        except NoReverseMatch:
            print(f"{what:45}{'no such page yet':>10}")
            continue
        measured.add(name)
        found = cost(Client() if name == "sign_in" else signed_in, address)
        # What passes on a quiet machine is what the processor works: reads come from memory, nothing is waited for.
        miss = found.processor_ms > MEDIAN_MS or found.first_load > FIRST_LOAD_BYTES
        missed += [what] * miss
        print(
            f"{what:45}{found.median_ms:10.1f}{found.p95_ms:9.1f}{found.processor_ms:9.1f}{found.queries:9}{found.first_load:15,}"
            + ("  MISSED" if miss else "  machine busy" if found.median_ms > MEDIAN_MS else ""),
            flush=True,
        )
    print("not measured:", ", ".join(sorted(n for n in known - measured if not NO_PAGES.fullmatch(n))) or "nothing")
    assert missed == []
