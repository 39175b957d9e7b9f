"""The list neither skips nor repeats while orders die and leave, both ways, also within one millisecond."""

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queue_app.policy.cursors import Cursor, PageRequest, decode
from queue_app.policy.filters import Filter
from queue_app.reads import dead, ways
from queue_app.reads.quarantine import Page, neighbours, page
from queue_app.services import queue
from tests.conftest import START_MS, Clock
from tests.dead_rows import bury
from tests.reads.stories import die, redrive
from tests.reads.test_dead import FILTERS

SNACKS = Filter(queue="snacks")


def start(clock: Clock, wanted: Filter = SNACKS, sort: str = "oldest", size: int = 20) -> Page:
    return page(wanted, PageRequest(sort, size), clock.now)


def follow(clock: Clock, link: str | None, wanted: Filter = SNACKS, size: int = 20) -> Page:
    assert link is not None
    cursor = decode(link, wanted.digest())
    return page(wanted, PageRequest(cursor.sort, size, cursor), clock.now)


def ids(found: Page) -> list[str]:
    return [row.job.id for row in found.rows]


def walk(clock: Clock, first: Page, between: Callable[[int], None] | None = None) -> Iterator[Page]:
    """The page and all after it; `between` acts after each."""
    found = first
    for n in range(1_000):
        yield found
        if between is not None:
            between(n)
        if found.next is None:
            return
        found = follow(clock, found.next, found.filter, found.size)


@pytest.fixture
def crowd(clock: Clock, db: None) -> Clock:
    """250 orders that died in only three milliseconds."""
    queue.enqueue_many({"id": f"c{n}", "quantity": 1} for n in range(250))
    for at_ms, n in ((0, 100), (1, 100), (2, 50)):
        clock.now = START_MS + at_ms
        for lease in queue.claim("worker-1", limit=n):
            queue.finish(lease.id, lease.token, "permanent", code=("http_422", "http_410")[lease.token % 2])
    clock.advance(1_000)
    return clock


@pytest.mark.parametrize("sort", ["oldest", "newest"])
def test_a_walk_meets_each_order_once_though_milliseconds_are_crowded(crowd: Clock, sort: str) -> None:
    pages = list(walk(crowd, start(crowd, sort=sort)))
    met = [job_id for found in pages for job_id in ids(found)]
    expected = [f"c{n}" for n in range(250)]
    assert met == (expected if sort == "oldest" else expected[::-1])
    assert {found.count for found in pages} == {dead.Count(250)}
    assert {found.as_of_ms for found in pages} == {crowd.now + 1}


@pytest.mark.parametrize("sort", ["oldest", "newest"])
def test_back_from_the_end_meets_each_order_once_too(crowd: Clock, sort: str) -> None:
    *_, last = walk(crowd, start(crowd, sort=sort))
    met = ids(last)
    while last.previous:
        last = follow(crowd, last.previous)
        met = ids(last) + met
    assert len(met) == len(set(met)) == 250
    assert follow(crowd, last.next).previous is not None


@pytest.mark.parametrize("sort", ["oldest", "newest"])
def test_orders_that_die_or_leave_meanwhile_disturb_nothing(crowd: Clock, team_lead: User, sort: str) -> None:
    gone: set[str] = set()

    def disturb(n: int) -> None:
        # one that was shown, one that was the cursor's own row, one that is still to come; and five new deaths
        for job_id in (f"c{n * 20}", f"c{n * 20 + 19}", f"c{249 - n}"):
            if job_id not in gone:
                redrive(job_id, team_lead)
                gone.add(job_id)
        crowd.advance(1)
        held = queue.claim("worker-2", limit=250)
        for lease in held:  # the redriven ones die again, at once: now they are newer than the list
            queue.finish(lease.id, lease.token, "permanent", code="http_422")
        die(crowd, [f"new{n}-{k}" for k in range(5)], apart_ms=1)

    pages = list(walk(crowd, start(crowd, sort=sort), disturb))
    met = [job_id for found in pages for job_id in ids(found)]
    assert len(met) == len(set(met))
    assert {f"c{n}" for n in range(250)} - gone <= set(met)
    assert not any(job_id.startswith("new") for job_id in met)
    later = follow(crowd, pages[0].next)
    assert later.newer.n == len(dead.chunk(Filter(died_from_ms=pages[0].as_of_ms), crowd.now + 1, None, 999)) > 0


@pytest.mark.parametrize("sort", ["oldest", "newest"])
@pytest.mark.parametrize("cursors_row", ["left", "stays"])
def test_where_all_after_the_cursor_left_the_way_back_still_holds_the_rest(
    crowd: Clock, team_lead: User, sort: str, cursors_row: str
) -> None:
    first = start(crowd, sort=sort, size=200)
    stay = ids(first)[: 199 if cursors_row == "left" else 200]
    for n in range(250):
        if f"c{n}" not in stay:
            redrive(f"c{n}", team_lead)
    empty = follow(crowd, first.next, size=200)
    assert (ids(empty), empty.next) == ([], None)
    assert ids(follow(crowd, empty.previous, size=200)) == stay


def test_neighbours_stand_though_the_order_itself_left(crowd: Clock, team_lead: User) -> None:
    first = start(crowd)
    place = decode(first.rows[7].place, SNACKS.digest())
    redrive("c7", team_lead)
    beside = neighbours(SNACKS, place)
    assert beside.previous is not None
    assert beside.next is not None
    assert (beside.previous[0], beside.next[0]) == ("c6", "c8")
    assert neighbours(SNACKS, decode(beside.previous[1], SNACKS.digest())).next == ("c8", beside.next[1])
    assert neighbours(SNACKS, decode(first.rows[0].place, SNACKS.digest())).previous is None
    newest = start(crowd, sort="newest")
    beside = neighbours(SNACKS, decode(newest.rows[0].place, SNACKS.digest()))
    assert beside.previous is None
    assert beside.next is not None
    assert beside.next[0] == "c248"


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_rows(clock: Clock, db: None, n: int) -> None:
    die(clock, [f"a{k}" for k in range(n)])
    found = start(clock)
    assert ids(found) == [f"a{k}" for k in range(n)]
    assert (found.count.n, found.next, found.previous, found.newer.n, found.searching) == (n, None, None, 0, False)


@pytest.mark.parametrize("wanted", FILTERS, ids=lambda wanted: wanted.canonical())
@pytest.mark.parametrize("sort", ["oldest", "newest"])
def test_one_number_in_four_places(mixed: Clock, wanted: Filter, sort: str) -> None:
    """Card, list with its footer, plan preview, export."""
    found = start(mixed, wanted, sort, size=3)
    met = [job_id for part in walk(mixed, found) for job_id in ids(part)]
    assert len(met) == found.count.n == dead.count(wanted, found.as_of_ms).n
    exported = [row.id for row in dead.chunk(wanted, found.as_of_ms, None, 1_000)]
    assert met == (exported if sort == "oldest" else exported[::-1])


def test_a_search_for_rare_rows_goes_on_from_page_to_page(mixed: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "SCAN", 4)
    wanted = Filter(redriven=True)
    pages = list(walk(mixed, start(mixed, wanted)))
    assert [job_id for found in pages for job_id in ids(found)] == ["s1"]
    assert [found.searching for found in pages] == [True] * (len(pages) - 1) + [False]
    assert not pages[0].count.exact


def test_a_cursor_from_the_future_shows_nothing_that_did_not_happen(crowd: Clock) -> None:
    forged = Cursor(SNACKS.digest(), "oldest", False, crowd.now + 10**9, 0, 0)
    found = page(SNACKS, PageRequest("oldest", 20, forged), crowd.now)
    assert found.as_of_ms == crowd.now + 1


def test_the_number_of_queries_does_not_grow(clock: Clock, db: None) -> None:
    bury(2, now_ms=clock.now)
    for wanted in (
        Filter(),
        SNACKS,
        Filter(redriven=True, queue="snacks"),
        Filter(id_prefix="o1"),
        Filter(looked=False),
    ):
        with CaptureQueriesContext(connection) as few:
            start(clock, wanted)
        bury(400, now_ms=clock.now, first=int(1e6) + hash(wanted) % 10**6 * 1_000)
        with CaptureQueriesContext(connection) as many:
            start(clock, wanted, size=200)
        assert len(many) == len(few) <= 14
