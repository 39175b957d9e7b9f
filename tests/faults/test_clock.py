"""F35, F37, F39: clocks that jump and clocks that differ. Tokens fence whatever they say; on PostgreSQL its own counts."""

import time
from itertools import count

import pytest
from django.db import connection

from queue_app import clock as product_clock
from queue_app.services import queue
from tests.conftest import START_MS
from tests.delivery.conftest import SOON_S, adapter, timed
from tests.delivery.rawserver import HOLD, READ, RawServer, answer
from tests.engine.invariants import check_all
from tests.engine.rows import LEASE, failures, put, stand, take

HOUR = 3_600_000
__all__ = ["adapter"]

pytestmark = pytest.mark.django_db


def test_F35_after_a_jump_of_an_hour_leases_end_early_once_and_tokens_fence(clock):  # noqa: N802
    put("a", at=clock.now)
    put("b", at=clock.now)
    first = take("w1", at=None)
    clock.advance(HOUR)
    again = {lease.id: lease for lease in queue.claim("w2", limit=9)}
    assert {job_id: (lease.attempt, lease.token) for job_id, lease in again.items()} == {"a": (2, 2), "b": (1, 1)}
    assert queue.claim("w3", limit=9) == [], "early once, not again and again"
    assert not queue.finish("a", first.token, "ok"), "who was overtaken by the jump ends nothing"
    assert queue.finish("a", 2, "ok")
    assert stand("a") == ("done", "", "", 2, 2)
    assert [row[2] for row in failures("a")] == ["lease_expired"]
    check_all()


def test_F35_a_deadline_inside_the_jump_is_too_late_and_one_beyond_it_is_not(clock):  # noqa: N802
    put("short", at=clock.now, deadline_ms=clock.now + HOUR // 2)
    put("long", at=clock.now, deadline_ms=clock.now + 2 * HOUR)
    clock.advance(HOUR)
    assert [lease.id for lease in queue.claim("w", limit=9)] == ["long"]
    assert stand("short")[:2] == ("dead", "deadline")


@pytest.mark.parametrize("off", [-180_000, 180_000])
def test_F37_a_worker_whose_clock_is_wrong_steals_nothing_where_the_database_has_the_clock(clock, monkeypatch, off):  # noqa: N802
    put("a", at=clock.now)
    take("w1", at=None)
    monkeypatch.setattr(product_clock, "now_ms", lambda: clock.now + off)
    stolen = [lease.id for lease in queue.claim("w2")]
    # one machine has one clock: with SQLite the wrong one is everybody's, and the token fences as above
    assert stolen == (["a"] if connection.vendor == "sqlite" and off > LEASE else [])
    check_all()


@pytest.mark.parametrize("jump", [-HOUR, HOUR])
@pytest.mark.parametrize(("says", "read_ms", "told"), [(None, 20_000, "done"), (HOLD, 200, "retry")])
def test_F39_a_wall_clock_that_jumps_during_a_delivery_makes_it_neither_longer_nor_shorter(  # noqa: N802
    monkeypatch, adapter, jump, says, read_ms, told
):
    instants = count(START_MS, jump)  # each look at it is another hour away from the one before
    monkeypatch.setattr(product_clock, "now_ms", lambda: next(instants))
    monkeypatch.setattr(time, "time", lambda: next(instants) / 1_000)
    with RawServer([READ, says or answer(b'{"ok":true,"id":"o1"}')]) as server:
        (kind, _code), took_s = timed(adapter(server.url, read_ms=read_ms))
    assert kind == told
    assert read_ms > 1_000 or took_s > 0.1
    assert took_s < SOON_S
