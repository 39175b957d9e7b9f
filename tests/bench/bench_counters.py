"""What the counters cost: `python -m tests.pgserver python -m tests.bench.bench_counters` (or without a server: SQLite).

Each statement touches 10,000 rows, and is timed with the counters' triggers and without them, in turn, each time rolled
back; the medians and their ratio are printed. On PostgreSQL the bar is a ratio of about one.
"""

import os
import statistics
import tempfile
import time

from tests.undone import undone

ROWS, ROUNDS = 10_000, 9
STATEMENTS = {
    "insert": "INSERT INTO jobs (id, seq, queue, quantity, max_attempts, available_at, deadline, created_at_ms, "
    "changed_at_ms) SELECT 'n' || id, -seq, queue, quantity, max_attempts, available_at, deadline, created_at_ms, "
    "changed_at_ms FROM jobs",
    "claim": "UPDATE jobs SET state = 'leased', owner = 'w', lease_until = 9, token = 1, attempts = 1, changed_at_ms = 7",
    "renew": "UPDATE jobs SET lease_until = lease_until + 1 WHERE state = 'leased'",
    "die": "UPDATE jobs SET state = 'dead', reason = 'permanent', code = 'http_422', owner = NULL, lease_until = NULL, "
    "changed_at_ms = 8",
    "redrive": "UPDATE jobs SET state = 'pending', reason = '', code = '', redriven = redriven + 1, attempts = 0, "
    "changed_at_ms = 9",
}
BEFORE = {"insert": (), "claim": (), "renew": ("claim",), "die": ("claim",), "redrive": ("claim", "die")}


def timed(name: str, *, counted: bool) -> float:
    """Seconds of one statement over all rows."""
    from django.db import connection

    from queue_app.store import triggers

    with undone(), connection.cursor() as cursor:
        if not counted:
            for trigger in list(triggers._present(connection)):
                if "_count" in trigger or "_flow" in trigger:
                    triggers.drop(connection, trigger)
        for earlier in BEFORE[name]:
            cursor.execute(STATEMENTS[earlier])
        begun = time.perf_counter()
        cursor.execute(STATEMENTS[name])
        return time.perf_counter() - begun


def main() -> None:
    """Print the table."""
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection

    from queue_app.services import queue

    call_command("migrate", verbosity=0)
    for first in range(0, ROWS, 1_000):
        queue.enqueue_many([{"id": f"b{first + n}", "quantity": 1} for n in range(1_000)])
    print(f"{connection.vendor}, {ROWS:,} rows in one statement, median of {ROUNDS} rounds in ms")
    print(f"{'':10}{'counted':>10}{'without':>10}{'ratio':>8}")
    for name in STATEMENTS:
        took: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(ROUNDS):
            for counted in (True, False):
                took[counted].append(timed(name, counted=counted) * 1_000)
        with_, without = statistics.median(took[True]), statistics.median(took[False])
        print(f"{name:10}{with_:10.1f}{without:10.1f}{with_ / without:8.2f}")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "snackops.settings")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SNACKOPS_DATA"] = folder
        main()
