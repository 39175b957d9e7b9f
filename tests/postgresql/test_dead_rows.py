"""A long transaction elsewhere keeps dead rows alive; a claim stays within its time nevertheless (F34).

TESTS_DEAD_ROWS=100000 makes it the full case; the usual run is small.
"""

import os
import time

import psycopg
import pytest
from django.db import connection

from queue_app.models import Job
from queue_app.services import queue

DEAD_ROWS = int(os.environ.get("TESTS_DEAD_ROWS", "4000"))
BUDGET_S = 0.25  # a claim, median; measured on a busy machine: 10 ms after 4,000 orders, 126 ms after 100,000


@pytest.mark.django_db(transaction=True)
def test_a_claim_keeps_its_time_beside_rows_that_nobody_may_remove(real_database):
    with psycopg.connect(real_database.url) as long_one:
        long_one.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        long_one.execute("SELECT count(*) FROM jobs")
        made = 0
        while made < DEAD_ROWS:  # each is accepted, leased and done: two dead versions of it lie before the next
            some = min(1_000, DEAD_ROWS - made)
            queue.enqueue_many([{"id": f"d{made + n}", "quantity": 1} for n in range(some)])
            leases = queue.claim("w", limit=some)
            assert len(leases) == some
            queue.finish_many([queue.Result(lease.id, lease.token, "ok") for lease in leases])
            made += some
        queue.enqueue_many([{"id": f"live-{n}", "quantity": 1} for n in range(9)])
        with connection.cursor() as cursor:
            cursor.execute("VACUUM jobs")  # removes nothing: the long transaction may still want to see it
        took = []
        for _ in range(9):
            begun = time.monotonic()
            (lease,) = queue.claim("w")
            took.append(time.monotonic() - begun)
            assert lease.id.startswith("live-")
        long_one.rollback()
    print(
        f"{DEAD_ROWS:,} orders done: claim median {sorted(took)[4] * 1_000:.1f} ms, longest {max(took) * 1_000:.1f} ms"
    )
    assert sorted(took)[4] < BUDGET_S, took
    assert Job.objects.filter(state="leased").count() == 9
