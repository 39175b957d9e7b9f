"""How fast the engine is: `python -m tests.bench.bench_engine` prints a table in less than a minute on a quiet machine.

Real processes on a fresh database: SQLite in both journal modes, or, with DATABASE_URL, that database (an empty one).
Figures are medians of a few short rounds on the machine at hand; claims are timed one by one.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parents[2]
ROUNDS, SECONDS = 3, 1.5
BATCH, FILL = 500, 4_000
MODES = {"PERSIST": {"SNACKOPS_SQLITE_WAL": "0"}, "WAL": {"SNACKOPS_SQLITE_WAL": "1"}}


# --- in a worker process --------------------------------------------------------------------------------------------
def fill(number: int) -> list[float]:
    """Accept that many orders in batches; orders per second."""
    from queue_app.services import queue

    start = time.perf_counter()
    for first in range(0, number, BATCH):
        orders = [{"id": f"b{os.getpid()}-{start}-{first + n}", "quantity": 1} for n in range(BATCH)]
        queue.enqueue_many(orders)
    return [number / (time.perf_counter() - start)]


def turns(limit: int) -> list[float]:
    """Claim and finish for some seconds, `limit` jobs at once; jobs done."""
    from queue_app.services import queue

    end, done = time.perf_counter() + SECONDS, 0
    results: list[queue.Result] = []
    while time.perf_counter() < end:
        if limit == 1:
            leases = queue.claim(f"w{os.getpid()}")
            for lease in leases:
                done += queue.finish(lease.id, lease.token, "ok")
        else:
            ended, leases = queue.finish_and_claim(results, f"w{os.getpid()}", limit=limit)
            done += sum(ended)
            results = [queue.Result(lease.id, lease.token, "ok") for lease in leases]
    done += sum(queue.finish_many(results))
    return [float(done)]


def claims(_: int) -> list[float]:
    """Claim for some seconds; the time of each claim in ms. The finish in between is not timed."""
    from queue_app.services import queue

    end, times = time.perf_counter() + SECONDS, []
    while time.perf_counter() < end:
        start = time.perf_counter()
        leases = queue.claim(f"w{os.getpid()}")
        times.append((time.perf_counter() - start) * 1_000)
        for lease in leases:
            queue.finish(lease.id, lease.token, "ok")
    return times


def writes(_: int) -> list[float]:
    """Somebody else who accepts orders all the time, in batches."""
    end, count = time.perf_counter() + SECONDS, 0
    while time.perf_counter() < end:
        fill(BATCH)
        count += BATCH
    return [float(count)]


ROLES: dict[str, Callable[[int], list[float]]] = {"fill": fill, "turns": turns, "claims": claims, "writes": writes}


def serve(roles: Mapping[str, Callable[[int], list[float]]]) -> None:
    """One round for each line `[role, number]` on standard input."""
    import django

    django.setup()
    for line in sys.stdin:
        role, number = json.loads(line)
        print(json.dumps(roles[role](number)), flush=True)


# --- in the parent --------------------------------------------------------------------------------------------------
class Crew:
    """Worker processes that begin their rounds together."""

    def __init__(self, processes: list[subprocess.Popen[str]]) -> None:
        self._processes = processes

    def round(self, *orders: tuple[str, int]) -> list[list[float]]:
        """Give the first workers one order each; their answers."""
        used = self._processes[: len(orders)]
        for process, order in zip(used, orders, strict=True):
            assert process.stdin
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
        return [json.loads(process.stdout.readline()) for process in used if process.stdout]


@contextmanager
def crew(environ: dict[str, str], size: int, module: str = "tests.bench.bench_engine") -> Iterator[Crew]:
    """Start workers of a benchmark; they end when their input does."""
    command = [sys.executable, "-m", module, "serve"]
    with ExitStack() as stack:
        processes = []
        for _ in range(size):
            process = subprocess.Popen(
                command, env=environ, cwd=BASE_DIR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            processes.append(stack.enter_context(process))
        yield Crew(processes)


def measure(environ: dict[str, str]) -> dict[str, float]:
    """Every figure for one database."""
    subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], env=environ, cwd=BASE_DIR, check=True)
    with crew(environ, 4) as workers:
        workers.round(*[("claims", 0)] * 4)  # connect, warm up
        accepted = [workers.round(("fill", FILL))[0][0] for _ in range(ROUNDS)]
        figures = {"enqueue_many, orders/s": statistics.median(accepted)}
        for size, limit in ((1, 1), (4, 1), (1, 10), (4, 10)):
            done = []
            for _ in range(ROUNDS):
                workers.round(("fill", FILL))
                done.append(sum(answer[0] for answer in workers.round(*[("turns", limit)] * size)) / SECONDS)
            figures[f"claim + finish, {size} process(es), {limit} at once, jobs/s"] = statistics.median(done)
        for name, others in (
            ("alone", []),
            ("another writes", [("writes", 0)]),
            ("three others claim", [("claims", 0)] * 3),
        ):
            times = sorted(time for _ in range(ROUNDS) for time in workers.round(("claims", 0), *others)[0])
            figures[f"claim, {name}, median ms"] = statistics.median(times)
            figures[f"claim, {name}, p99 ms"] = times[int(len(times) * 0.99)]
    return figures


def main() -> None:
    """Print the table."""
    columns: dict[str, dict[str, float]] = {}
    modes = {"DATABASE_URL": {}} if os.environ.get("DATABASE_URL") else MODES
    for name, more in modes.items():
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            environ = {**os.environ, **more, "SNACKOPS_DATA": folder, "DJANGO_SETTINGS_MODULE": "snackops.settings"}
            columns[name] = measure(environ)
    print(f"{'':50}" + "".join(f"{name:>14}" for name in columns))
    for row in next(iter(columns.values())):
        print(f"{row:50}" + "".join(f"{figures[row]:14,.1f}" for figures in columns.values()))


if __name__ == "__main__":
    serve(ROLES) if sys.argv[1:] == ["serve"] else main()
