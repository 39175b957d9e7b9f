"""Local times on the list: gaps and folds of the clocks are meant in one way, and what is stored stays as it is."""

from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from queue_app.models import Preference
from queue_app.services import queue
from tests.conftest import Clock
from tests.reads.stories import accept, die
from tests.views.seen import rows_of, text_of

pytestmark = pytest.mark.django_db


def at(year: int, month: int, day: int, hour: int) -> int:
    """The instant of an hour of UTC in ms."""
    return int(datetime(year, month, day, hour, tzinfo=UTC).timestamp()) * 1_000


@dataclass(frozen=True)
class Jumps:
    """A zone's clocks in 2027: the first instants after they jump forwards and back, and a local time in each jump."""

    zone: str
    gap: int
    fold: int
    skipped: str
    twice: str
    names: tuple[str, str]


JUMPS = [
    Jumps(
        "America/Chicago",
        at(2027, 3, 14, 8),
        at(2027, 11, 7, 7),
        "2027-03-14T02:30",
        "2027-11-07T01:30",
        ("CST", "CDT"),
    ),
    Jumps(
        "Europe/Berlin",
        at(2027, 3, 28, 1),
        at(2027, 10, 31, 1),
        "2027-03-28T02:30",
        "2027-10-31T02:30",
        ("CET", "CEST"),
    ),
]
in_each_zone = pytest.mark.parametrize("jumps", JUMPS, ids=lambda jumps: jumps.zone)


def live_in(user: User, zone: str) -> None:
    """The person's own zone."""
    Preference.objects.update_or_create(user=user, defaults={"time_zone": zone})


@in_each_zone
def test_a_time_that_the_clocks_skip_means_the_jump(
    clock: Clock, console: Client, operator: User, jumps: Jumps
) -> None:
    live_in(operator, jumps.zone)
    jump = jumps.gap
    clock.now = jump - 1_000
    die(clock, ["before", "after"])
    clock.advance(1_000)
    since = console.get("/quarantine/", {"died_from": jumps.skipped})
    assert rows_of(since.text) == ["after"]
    assert rows_of(console.get("/quarantine/", {"died_to": jumps.skipped}).text) == ["before"]
    local = datetime.fromtimestamp(jump // 1_000, ZoneInfo(jumps.zone))
    assert f"{local:%Y-%m-%d %H:%M:%S} {jumps.names[1]}" in text_of(since.text)
    with connection.cursor() as cursor:
        cursor.execute("SELECT changed_at_ms FROM jobs ORDER BY changed_at_ms")
        assert [row[0] for row in cursor.fetchall()] == [jump - 1_000, jump]


@in_each_zone
def test_a_time_that_the_clocks_pass_twice_means_both_hours(
    clock: Clock, console: Client, operator: User, jumps: Jumps
) -> None:
    live_in(operator, jumps.zone)
    clock.now = jumps.fold - 1_800_000
    die(clock, ["first"], apart_ms=3_600_000)
    die(clock, ["second"])
    clock.advance(7_200_000)
    page = console.get("/quarantine/", {"died_from": jumps.twice}).text
    assert rows_of(page) == ["first", "second"]
    assert f"{jumps.twice.replace('T', ' ')}:00 {jumps.names[1]}" in text_of(page)
    assert f"{jumps.twice.replace('T', ' ')}:00 {jumps.names[0]}" in text_of(page)
    assert rows_of(console.get("/quarantine/", {"died_to": jumps.twice}).text) == ["first"]
    # a link in ms to the second passing cannot be typed as a local time: it stays what it is
    link = console.get("/quarantine/", {"died_from": str(jumps.fold + 1_800_000)}).text
    assert rows_of(link) == ["second"]
    assert f'value="{jumps.fold + 1_800_000}"' in link


@in_each_zone
def test_a_wait_across_the_jump_is_as_long_as_any_other(
    clock: Clock, console: Client, operator: User, jumps: Jumps
) -> None:
    live_in(operator, jumps.zone)
    for jump in (jumps.gap, jumps.fold):
        clock.now = jump - 500
        job_id = f"o{jump}"
        accept([job_id])
        (lease,) = queue.claim("w")
        queue.finish(job_id, lease.token, "retry", code="http_503")
        with connection.cursor() as cursor:
            cursor.execute("SELECT available_at FROM jobs WHERE id = %s", [job_id])
            assert cursor.fetchone() == (jump + 500,)
        page = text_of(console.get(f"/orders/{job_id}/").text)
        assert f"{datetime.fromtimestamp(jump / 1_000, ZoneInfo(jumps.zone)):%Y-%m-%d %H:%M:%S}" in page
        assert any(name in page for name in jumps.names)
        (lease,) = queue.claim("w", now_ms=jump + 500)
        queue.finish(job_id, lease.token, "ok", now_ms=jump + 500)


def test_an_instant_beyond_the_calendar_is_refused_and_a_page_still_stands(clock: Clock, console: Client) -> None:
    for text in ("253402300800000", "99999999999999999999", "10000-01-01T00:00"):
        assert console.get("/quarantine/", {"died_from": text}).status_code == 400
    assert console.get("/quarantine/", {"died_to": "253402300799999"}).status_code == 200
