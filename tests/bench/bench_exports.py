"""How long commits of another process wait beside an export whose filter matches few of 100,000 dead orders.

`nice -n 10 python -m tests.bench.bench_exports [ROUNDS]` prints a table. The variants take turns of two seconds, so that what
else the machine does meets all alike. SQLite in a folder in memory (only locks count), or the server of DATABASE_URL.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.growth_places import Place, environ_of

DEAD = 100_000
TURN_S = 2.0
NOW = 1_800_000_000_000
SCANS = (0, 20_000, 2_000, 1_000, 500, 250)  # rows to one look; 0: no export


def writer() -> None:
    """For each line of input: commit for that many seconds, with a short rest between, and tell how long each took (ms)."""
    import django

    django.setup()
    from queue_app.services import life_signs

    life_signs.beat("bench", "worker")
    print("ready", flush=True)
    for line in sys.stdin:
        took, end = [], time.perf_counter() + float(line)
        while (start := time.perf_counter()) < end:
            life_signs.beat("bench", "worker")
            took.append((time.perf_counter() - start) * 1_000)
            time.sleep(0.005)
        print(json.dumps(took), flush=True)


def walk(scan: int, end: float) -> list[float]:
    """Look for few among many, again and again until the end; how long each look took (ms)."""
    from queue_app.policy.filters import Filter
    from queue_app.reads import dead
    from queue_app.services.exports import REST_S

    looks: list[float] = []
    wanted, after = Filter(attempts_min=50), None
    while (start := time.perf_counter()) < end:
        found = dead.stretch(wanted, NOW + 1, after, 200, scan=scan)
        looks.append((time.perf_counter() - start) * 1_000)
        after = found.searched_to
        time.sleep(REST_S)
    return looks


def main(rounds: int) -> None:
    """Lay the orders, let the variants take turns, print."""
    memory = Path("/dev/shm")  # noqa: S108
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        place = Place(Path(folder))
        address = place.lay("bench_exports")
        try:
            _measure(environ_of(address), rounds)
        finally:
            from django.db import connections

            connections.close_all()
            place.remove("bench_exports")


def _measure(environ: dict[str, str], rounds: int) -> None:
    import os

    os.environ.update(environ)
    import django

    django.setup()
    from django.core.management import call_command

    from tests.dead_rows import bury

    call_command("migrate", verbosity=0)
    bury(DEAD, now_ms=NOW)
    command = [sys.executable, "-m", "tests.bench.bench_exports", "writer"]
    commits: dict[int, list[float]] = {scan: [] for scan in SCANS}
    looks: dict[int, list[float]] = {scan: [] for scan in SCANS}
    with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        for _round in range(rounds):
            for scan in SCANS:
                child.stdin.write(f"{TURN_S}\n")
                child.stdin.flush()
                if scan:
                    looks[scan] += walk(scan, time.perf_counter() + TURN_S)
                commits[scan] += json.loads(child.stdout.readline())
        child.stdin.close()
    print(
        f"{'rows to a look':>15}{'looks/s':>10}{'look ms, p50':>14}{'p99':>8}{'commit ms, p50':>16}{'p99':>8}{'max':>8}"
    )
    for scan in SCANS:
        theirs, ours = commits[scan], looks[scan] or [0.0]
        a_second = len(looks[scan]) / (rounds * TURN_S)
        print(
            f"{scan or 'no export':>15}{a_second:10.0f}{statistics.median(ours):14.1f}{_p99(ours):8.1f}"
            f"{statistics.median(theirs):16.1f}{_p99(theirs):8.1f}{max(theirs):8.1f}"
        )


def _p99(values: list[float]) -> float:
    return sorted(values)[len(values) * 99 // 100]


if __name__ == "__main__":
    if sys.argv[1:] == ["writer"]:
        writer()
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
