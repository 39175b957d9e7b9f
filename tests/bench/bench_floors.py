"""The engine against the raw driver: `python -m tests.bench.bench_floors [ROUNDS]` prints medians and ratios.

Same statements, same migrated database, same durability, real processes, rounds interleaved, so that whatever else the
machine does hits both alike. SQLite always; PostgreSQL (durable) when one can be started. "least SQL" is no bar: it shows
what the policy, the evidence and the guards themselves cost.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from tests.bench.bench_engine import BASE_DIR, crew, serve
from tests.bench.floors import Driver, Turn, least, same
from tests.pgserver import server

ROUNDS, TURNS, SECONDS, WARM_UP = 5, 4, 0.5, 0.15  # short turns: what else the machine does changes within seconds
LOAD = 10_000
MODULE = "tests.bench.bench_floors"


# --- in a worker process --------------------------------------------------------------------------------------------
def _ids() -> list[str]:
    return [f"f{os.getpid()}-{time.time_ns()}-{n}" for n in range(LOAD)]


def fill(count: int) -> list[float]:
    """Accept orders so that none of the others runs dry."""
    from queue_app.services import queue

    for _ in range(0, count, LOAD):
        queue.enqueue_many([{"id": job_id, "quantity": 1} for job_id in _ids()])
    return []


def with_checks(_: int) -> list[float]:
    """One batch of orders through the door; orders per second."""
    from queue_app.services import queue

    orders = [{"id": job_id, "quantity": 1} for job_id in _ids()]
    start = time.perf_counter()
    answers = queue.enqueue_many(orders)
    spent = time.perf_counter() - start
    assert answers == ["accepted"] * LOAD
    return [LOAD / spent]


def without_checks(_: int) -> list[float]:
    """The same rows straight into the table; the triggers and CHECKs of the database stand."""
    driver, ids, now = _driver(), _ids(), int(time.time() * 1000)
    start = time.perf_counter()
    rows = [(job_id, seq, now + 86_400_000, now) for job_id, seq in zip(sorted(ids), driver.seqs(LOAD), strict=True)]
    driver.load(rows)
    return [LOAD / (time.perf_counter() - start)]


def _turns(turn: Turn, limit: int) -> list[float]:
    """Turns that finish what the one before took; jobs per second and the longest turn in ms.

    The first moments do not count: the engine gives way to another writer that it has seen in the last 100 ms, and that
    was the one measured before.
    """
    begin, done, longest, held = time.perf_counter() + WARM_UP, 0, 0.0, []
    while (start := time.perf_counter()) < begin + SECONDS:
        before = len(held)
        held = turn(held, limit)
        if start >= begin:
            done += before
            longest = max(longest, time.perf_counter() - start)
    return [done / (time.perf_counter() - begin), longest * 1_000]


def product(limit: int) -> list[float]:
    """The engine: finish and claim share a transaction."""
    from queue_app.services import queue

    def turn(before: list[queue.Lease], limit: int) -> list[queue.Lease]:
        results = [queue.Result(lease.id, lease.token, "ok") for lease in before]
        answers, leases = queue.finish_and_claim(results, f"w{os.getpid()}", limit=limit)
        assert all(answers)
        return leases

    return _turns(turn, limit)


_kept: dict[str, Any] = {}


def _driver() -> Driver:
    if "driver" not in _kept:
        _kept["driver"] = Driver()
    driver: Driver = _kept["driver"]
    return driver


def floor_same(limit: int) -> list[float]:
    """The product's statements, raw."""
    if "same" not in _kept:
        _kept["same"] = same(_driver())
    return _turns(_kept["same"], limit)


def floor_least(limit: int) -> list[float]:
    """The least SQL, raw."""
    return _turns(least(_driver()), limit)


ROLES: dict[str, Callable[[int], list[float]]] = {
    role.__name__: role for role in (fill, with_checks, without_checks, product, floor_same, floor_least)
}


# --- in the parent --------------------------------------------------------------------------------------------------
def measure(environ: dict[str, str], rounds: int) -> None:
    """Print the lines of one database."""
    subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], env=environ, cwd=BASE_DIR, check=True)
    figures: dict[str, list[float]] = defaultdict(list)
    shares, longest = [], []
    with crew(environ, 2, MODULE) as workers:
        workers.round(("fill", 2 * LOAD), ("fill", LOAD))
        for role in ROLES:
            workers.round((role, 1))  # connect, warm up
        for _ in range(rounds):
            for role in ("with_checks", "without_checks"):
                figures[role] += workers.round((role, 0))[0]
            for limit in (1, 100):
                workers.round(("fill", LOAD))
                for role in ("product", "floor_same", "floor_least") * TURNS:
                    if limit > 1:  # or a fast machine runs dry within one turn
                        workers.round(("fill", 3 * LOAD))
                    figures[f"{role} {limit}"].append(workers.round((role, limit))[0][0])
            pair = workers.round(("product", 1), ("product", 1))
            shares.append(min(answer[0] for answer in pair) / max(sum(answer[0] for answer in pair), 1))
            longest += [answer[1] for answer in pair]
            figures["two"].append(sum(answer[0] for answer in pair))
    middle = {name: statistics.median(values) for name, values in figures.items()}
    for limit in (1, 100):
        ours = middle[f"product {limit}"]
        print(f"  claim + finish, {limit:>3} a transaction, jobs/s {ours:10,.0f}")
        for role, name in (("floor_same", "same SQL, raw"), ("floor_least", "least SQL, raw")):
            each = [a / b for a, b in zip(figures[f"product {limit}"], figures[f"{role} {limit}"], strict=True)]
            print(f"    {name:37} {middle[f'{role} {limit}']:10,.0f}   ratio {statistics.median(each):5.2f}")
    each = [a / b for a, b in zip(figures["with_checks"], figures["without_checks"], strict=True)]
    print(f"  accept {LOAD:,} at once, orders/s          {middle['with_checks']:10,.0f}")
    print(
        f"    without checks, raw                   {middle['without_checks']:10,.0f}   ratio {statistics.median(each):5.2f}"
    )
    print(
        f"  two workers, one a transaction, jobs/s {middle['two']:10,.0f}   smaller share {statistics.median(shares):4.0%}"
    )
    print(f"    longest turn, ms                      {max(longest):10,.1f}")


def main(rounds: int) -> None:
    """SQLite, then PostgreSQL if there is one."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        environ = {**os.environ, "SNACKOPS_DATA": folder, "DJANGO_SETTINGS_MODULE": "snackops.settings"}
        environ.pop("DATABASE_URL", None)
        print(f"SQLite, medians of {rounds} rounds", flush=True)
        measure(environ, rounds)
        with server(durable=True) as running:
            print(f"PostgreSQL, medians of {rounds} rounds", flush=True)
            measure({**environ, "DATABASE_URL": running.url}, rounds)


if __name__ == "__main__":
    serve(ROLES) if sys.argv[1:] == ["serve"] else main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
