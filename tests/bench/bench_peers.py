"""How fast the engine is beside other queues: `python -m tests.bench.bench_peers [ROUNDS]` prints medians and ratios.

Same machine, same disk, same run, rounds interleaved; each peer runs in an environment of its own (`uv run --with`), as it
comes. Jobs do nothing. SQLite always; PostgreSQL when one can be started (`tests.pgserver`). Bars: SQLite in batches of 100
six times huey and twice litequeue (which is not safe at a power cut); PostgreSQL in batches of 100 2.5 times pgqueuer, one
at a time 1.5 times pgqueuer one at a time.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.pgserver import Server, server

BASE_DIR = Path(__file__).resolve().parents[2]
PACKAGES = ("huey", "litequeue", "pgqueuer", "asyncpg", "procrastinate", "psycopg[binary]")
JOBS = {"one": 2_000, "hundred": 20_000, "peer": 2_000}
MODES = (
    "",
    ", WAL",
)  # the rollback journal that is the default, and the setting that huey has: both survive a power cut
Round = dict[str, float]


def product(limit: int) -> Round:
    """In a process with a fresh migrated database: accept in batches, then claim, finish and claim again in one go."""
    import django

    django.setup()
    from django.core.management import call_command

    from queue_app.services import queue

    call_command("migrate", verbosity=0)
    count = JOBS["one"] if limit == 1 else JOBS["hundred"]
    start = time.perf_counter()
    for first in range(0, count, 10_000):
        queue.enqueue_many([{"id": f"p{n}", "quantity": 1} for n in range(first, min(first + 10_000, count))])
    filled, done, results = time.perf_counter() - start, 0, []
    start = time.perf_counter()
    while True:
        ended, leases = queue.finish_and_claim(results, "bench", limit=limit)
        done += sum(ended)
        if not leases:
            break
        results = [queue.Result(lease.id, lease.token, "ok") for lease in leases]
    worked = time.perf_counter() - start
    assert done == count, (done, count)
    return {"enqueue": count / filled, "work": count / worked}


def _product(limit: int, environ: dict[str, str]) -> Round:
    command = [sys.executable, "-m", "tests.bench.bench_peers", "--product", str(limit)]
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "snackops.settings", "SNACKOPS_LOG_LEVEL": "ERROR", **environ}
    done = subprocess.run(command, cwd=BASE_DIR, env=env, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _peer(name: str, database: str) -> Round:
    command = ["uv", "run", "-q", "--no-project", *(word for package in PACKAGES for word in ("--with", package))]
    command += ["python", str(BASE_DIR / "tests/bench/peers.py"), name, database, str(JOBS["peer"])]
    env = {key: value for key, value in os.environ.items() if key not in {"DATABASE_URL", "VIRTUAL_ENV"}}
    done = subprocess.run(command, cwd=BASE_DIR, env=env, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def sqlite_rounds() -> dict[str, Callable[[], Round]]:
    """Name -> one round on SQLite, each on a new file."""

    def fresh(act: Callable[[str], Round]) -> Callable[[], Round]:
        def run() -> Round:
            with tempfile.TemporaryDirectory(prefix="snackops-bench-", dir=BASE_DIR / ".data") as folder:
                return act(folder)

        return run

    return {
        "snackops, 1": fresh(lambda folder: _product(1, {"SNACKOPS_DATA": folder, "DATABASE_URL": ""})),
        "snackops, 100": fresh(lambda folder: _product(100, {"SNACKOPS_DATA": folder, "DATABASE_URL": ""})),
        "snackops, 100, WAL": fresh(
            lambda folder: _product(100, {"SNACKOPS_DATA": folder, "DATABASE_URL": "", "SNACKOPS_SQLITE_WAL": "1"})
        ),
        "huey": fresh(lambda folder: _peer("huey", f"{folder}/peer.db")),
        "litequeue": fresh(lambda folder: _peer("litequeue", f"{folder}/peer.db")),
    }


def postgresql_rounds(home: Server) -> dict[str, Callable[[], Round]]:
    """Name -> one round on PostgreSQL, each in a new database of the same server."""
    import psycopg

    count = 0

    def fresh(act: Callable[[str], Round]) -> Callable[[], Round]:
        def run() -> Round:
            nonlocal count
            count += 1
            with psycopg.connect(home.url.replace("postgres:", "postgresql:", 1), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE bench{count}")  # type: ignore[call-overload]
            return act(home.url.removesuffix("/postgres") + f"/bench{count}")

        return run

    def peer(name: str) -> Callable[[], Round]:
        return fresh(lambda url: _peer(name, url.replace("postgres:", "postgresql:", 1)))

    return {
        "snackops, 1": fresh(lambda url: _product(1, {"DATABASE_URL": url})),
        "snackops, 100": fresh(lambda url: _product(100, {"DATABASE_URL": url})),
        "pgqueuer, 10": peer("pgqueuer"),
        "pgqueuer, 1": peer("pgqueuer_one"),
        "procrastinate, 10": peer("procrastinate"),
    }


def table(
    title: str, rounds: dict[str, Callable[[], Round]], count: int, bars: Sequence[tuple[str, str, float]]
) -> None:
    """Run the rounds in turn, `count` times, and print medians and the ratios that a bar asks for."""
    seen: dict[str, list[Round]] = {name: [] for name in rounds}
    for _ in range(count):
        for name, run in rounds.items():
            seen[name].append(run())
    medians = {
        name: {what: statistics.median(found[what] for found in them) for what in ("enqueue", "work")}
        for name, them in seen.items()
    }
    print(f"\n{title:30}{'enqueue/s':>14}{'claim+finish/s':>18}")
    for name, row in medians.items():
        print(f"{name:30}{row['enqueue']:14,.0f}{row['work']:18,.0f}")
    for mine, other, bar in bars:
        print(f"{mine} : {other} = {medians[mine]['work'] / medians[other]['work']:.1f} (bar {bar})")


def main(count: int) -> None:
    """Print both tables."""
    (BASE_DIR / ".data").mkdir(exist_ok=True)
    bars = [(f"snackops, 100{mode}", peer, bar) for peer, bar in (("huey", 6.0), ("litequeue", 2.0)) for mode in MODES]
    table("SQLite", sqlite_rounds(), count, bars)
    with server(durable=True) as home:
        bars = [("snackops, 100", "pgqueuer, 10", 2.5), ("snackops, 1", "pgqueuer, 1", 1.5)]
        table("PostgreSQL", postgresql_rounds(home), count, bars)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--product"]:
        print(json.dumps(product(int(sys.argv[2]))))
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 3)
