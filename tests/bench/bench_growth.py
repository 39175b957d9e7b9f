"""What growth costs: `python -m tests.bench.bench_growth [--small N] [--big N] [--dead N] [--rounds N]`.

Compares the same product at a small and at a big number of orders (nine tenths done, a twentieth dead, a twentieth waiting):
the claim, and the pages overview, list, group, order and batch; the list's page 10,000 with its first; and, on a database of
dead orders only, freezing all of them and exporting all of them (time, write lock, memory, other commits meanwhile).

On SQLite (files in a temporary folder, or below --folder):
    .venv/bin/python -m tests.bench.bench_growth --small 10000 --big 10000000 --dead 1000000
On PostgreSQL, durable:
    PG_DURABLE=1 .venv/bin/python -m tests.pgserver \\
        .venv/bin/python -m tests.bench.bench_growth --small 10000 --big 10000000 --dead 1000000
A quick try of the whole: --small 10000 --big 100000 --dead 100000 (a minute or two).

The big run needs about 6 GB of disk and up to an hour, nearly all of it for laying the rows. Each database is laid, measured
and removed in turn. Times are medians of --rounds on the machine at hand, by a warm server in the same process.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

BASE_DIR = Path(__file__).resolve().parents[2]
PASSWORD = "a good password"
PAGE = 50  # rows of a page of the list
DEEP = 10_000  # the page that is compared with the first


# --- in a process on one database -----------------------------------------------------------------------------------
def _ready(total: int, *, dead_every: int) -> int:
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    from queue_app.services.accounts import set_person
    from queue_app.store import database
    from tests.bench import growth_rows

    settings.ALLOWED_HOSTS = ["*"]
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)  # whitenoise warns when it is missing
    call_command("migrate", verbosity=0)
    set_person("oda", role="operator", password=PASSWORD)
    set_person("tom", role="team_lead", password=PASSWORD)
    now = database.now_ms()
    start = time.perf_counter()
    growth_rows.fill(
        total, now_ms=now, dead_every=dead_every, told=lambda line: print(f"  {line}", file=sys.stderr, end="\r")
    )
    print(f"  {total:,} orders laid in {time.perf_counter() - start:.0f} s     ", file=sys.stderr)
    return now


def _percentiles(times: list[float]) -> list[float]:
    ordered = sorted(times)
    return [statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]]


def _timed(action: object, rounds: int) -> list[float]:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()  # type: ignore[operator]
        times.append((time.perf_counter() - start) * 1_000)
    return _percentiles(times)


def claims(rounds: int) -> list[float]:
    """A claim of one order, the finish in between not timed: [p50, p95] in ms."""
    from queue_app.services import queue

    times = []
    for _ in range(rounds * 5):
        start = time.perf_counter()
        (lease,) = queue.claim("bench", limit=1)
        times.append((time.perf_counter() - start) * 1_000)
        queue.finish(lease.id, lease.token, "ok")
    return _percentiles(times)


def frozen_plan(chunk_times: list[float] | None = None) -> int:
    """A plan over every dead order, its list made as a redriver makes it."""
    from django.contrib.auth.models import User

    from queue_app.policy.filters import Filter
    from queue_app.policy.selections import CHUNK, by_filter
    from queue_app.policy.terms import MAX_RATE_MJ, Terms
    from queue_app.services import freezing, plans

    plans.IN_REQUEST = -1
    oda = User.objects.get(username="oda")
    plan = plans.ask(oda, by_filter(Filter(queue="snacks")), Terms(MAX_RATE_MJ, canary=0), note="BENCH-1").plan
    size = CHUNK[0]
    while (progress := freezing.step(plan, size)) is not None and not progress.done:
        size = progress.size
        if chunk_times is not None:
            chunk_times.append(float(progress.held_ms))
    return plan


def begun(plan: int) -> None:
    """Approve it and let it take a few steps, so that its page shows a batch at work."""
    from django.contrib.auth.models import User

    from queue_app.models import Plan
    from queue_app.services import approvals, ticks

    tom, row = User.objects.get(username="tom"), Plan.objects.get(pk=plan)
    approvals.approve(
        tom, plan, round=1, digest=row.digest, note="BENCH-2", typed=str(row.planned),
        proof=approvals.confirm_identity(tom, PASSWORD),
    )  # fmt: skip
    assert ticks.begin(plan)
    for _ in range(3):
        ticks.tick(plan, bite=20, unlimited=True)


def pages(now: int, rounds: int) -> dict[str, list[float]]:
    """[p50, p95] in ms of each page."""
    from django.contrib.auth.models import User
    from django.db import connection
    from django.test import Client

    from queue_app.models import Job
    from queue_app.policy.cursors import Cursor
    from queue_app.policy.filters import Filter

    plan = frozen_plan()
    begun(plan)
    client = Client()
    client.force_login(User.objects.get(username="tom"), backend="django.contrib.auth.backends.ModelBackend")
    dead = Job.objects.filter(state="dead").order_by("changed_at_ms", "seq").values_list("changed_at_ms", "seq", "id")
    offset = max(0, min(DEEP * PAGE, dead.count()) - 2 * PAGE)
    at_ms, seq, job_id = dead[offset]
    cursor = Cursor(Filter().digest(), "oldest", back=False, as_of_ms=now + 1, at_ms=at_ms, seq=seq).encode()
    addresses = {
        "overview": "/",
        "list": f"/quarantine/?size={PAGE}",
        f"list, page {offset // PAGE + 1:,}": f"/quarantine/?size={PAGE}&cursor={cursor}",
        "group": "/causes/snacks/exhausted/http_503/",
        "order": f"/orders/{job_id}/",
        "batch": f"/redrives/{plan}/",
        "batch, its orders": f"/redrives/{plan}/orders/",
    }
    found = {}
    for name, address in addresses.items():
        assert client.get(address).status_code == 200, address
        found[name] = _timed(lambda address=address: client.get(address).content, rounds)
    connection.close()
    return found


class Memory:
    """How much more memory this process holds at its highest than at the beginning, in MB, looked at 100 times a second."""

    def __enter__(self) -> "Memory":
        self._page = resource.getpagesize()
        self._first = self.most = self._now()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _now(self) -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * self._page

    def _watch(self) -> None:
        while not self._stop.wait(0.01):
            self.most = max(self.most, self._now())

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.growth_mb = (self.most - self._first) / 1_000_000


def freeze(dead: int) -> dict[str, float]:
    """All dead orders frozen into one plan."""
    held: list[float] = []
    with Memory() as memory:
        start = time.perf_counter()
        frozen_plan(held)
        seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "orders per s": dead / seconds,
        "lock p50 ms": statistics.median(held),
        "lock p99 ms": sorted(held)[int(len(held) * 0.99)],
        "lock max ms": max(held),
        "memory MB": memory.growth_mb,
    }


def export(rows: int) -> dict[str, float]:
    """All dead orders as one CSV file, read by a client that takes what it gets; commits of another process beside it."""
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.get(username="tom"), backend="django.contrib.auth.backends.ModelBackend")
    quiet = _commits(lambda: time.sleep(5))
    told: dict[str, float] = {}

    def read() -> None:
        with Memory() as memory:
            start = time.perf_counter()
            answer = client.post("/quarantine/export/", {"format": "csv"})
            assert answer.status_code == 200, answer.status_code
            size = sum(len(chunk) for chunk in answer.streaming_content)
            told.update({"seconds": time.perf_counter() - start, "MB": size / 1_000_000})
        told["memory MB"] = memory.growth_mb

    busy = _commits(read)
    return {
        **told,
        "rows per s": rows / told["seconds"],
        "commit p50 ms quiet": quiet[0],
        "commit p50 ms meanwhile": busy[0],
        "commit p99 ms quiet": quiet[1],
        "commit p99 ms meanwhile": busy[1],
    }


def _commits(meanwhile: object) -> list[float]:
    """[p50, p99] in ms of another process's commits while something goes on here."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.bench_growth", "commits"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    child.stdout.readline()
    meanwhile()  # type: ignore[operator]
    return list(json.loads(child.communicate("")[0]))


def commits() -> None:
    """Accept an order about a hundred times a second until standard input ends."""
    import select

    import django

    django.setup()
    from queue_app.services import queue

    queue.enqueue(f"c{os.getpid()}", 1)
    print("ready", flush=True)
    times: list[float] = []
    while not (times and select.select([sys.stdin], [], [], 0.01)[0]):
        start = time.perf_counter()
        queue.enqueue(f"c{os.getpid()}-{len(times)}", 1)
        times.append((time.perf_counter() - start) * 1_000)
    print(json.dumps([statistics.median(times), sorted(times)[int(len(times) * 0.99)]]))


# --- the whole ------------------------------------------------------------------------------------------------------
def on(address: str, *arguments: str) -> dict[str, dict[str, object]]:
    """Run this module on a database; what it measured."""
    environ = {**os.environ, "DATABASE_URL": address, "DJANGO_SETTINGS_MODULE": "snackops.settings"}
    environ["SNACKOPS_LOG_LEVEL"] = "ERROR"
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.bench_growth", *arguments], env=environ, cwd=BASE_DIR,
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return dict(json.loads(done.stdout.splitlines()[-1]))


class Place:
    """Where databases are laid: files of SQLite, or databases of the server in DATABASE_URL. Each is removed in turn."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._server = folder, os.environ.get("DATABASE_URL", "")
        os.environ["SNACKOPS_DATA"] = str(folder)

    def _sql(self, text: str) -> None:
        import psycopg

        with psycopg.connect(self._server, autocommit=True) as session:
            session.execute(text)  # type: ignore[call-overload]

    def lay(self, name: str) -> str:
        """The address of a new database."""
        if not self._server:
            return f"sqlite:///{self._folder / name}.sqlite3"
        self._sql(f"CREATE DATABASE {name}")
        return urlunsplit(urlsplit(self._server)._replace(path=f"/{name}"))

    def remove(self, name: str) -> None:
        """The database, its journal too."""
        if self._server:
            self._sql(f"DROP DATABASE {name} WITH (FORCE)")
        for path in self._folder.glob(f"{name}.sqlite3*"):
            path.unlink()


def measured(place: Place, name: str, *arguments: str) -> dict[str, dict[str, object]]:
    """Lay, measure, remove."""
    try:
        return on(place.lay(name), *arguments)
    finally:
        place.remove(name)


def compare(small: dict[str, list[float]], big: dict[str, list[float]], sizes: tuple[int, int]) -> None:
    """The table of medians and ratios."""
    print(f"\n{'':24}{f'{sizes[0]:,} orders':>22}{f'{sizes[1]:,} orders':>22}{'ratio':>9}")
    print(f"{'':24}{'median ms':>12}{'p95 ms':>10}{'median ms':>12}{'p95 ms':>10}{'medians':>9}")
    for name, (median, p95) in big.items():
        before = small.get(name)
        left = f"{before[0]:12.2f}{before[1]:10.2f}" if before else f"{'-':>12}{'-':>10}"
        ratio = f"{median / before[0]:9.2f}" if before else f"{'-':>9}"
        print(f"{name:24}{left}{median:12.2f}{p95:10.2f}{ratio}")
    deep = next(name for name in big if name.startswith("list, page"))
    print(f"{deep} over the first page: {big[deep][0] / big['list'][0]:.2f}")


def main() -> None:
    """Everything in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=10_000)
    parser.add_argument("--big", type=int, default=100_000)
    parser.add_argument(
        "--dead", type=int, default=100_000, help="dead orders to freeze and to export; 0: leave it out"
    )
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--folder", type=Path, help="where SQLite's files go (default a temporary folder)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        place = Place(Path(folder))
        small = measured(place, "growth_small", "compare", str(given.small), str(given.rounds))
        big = measured(place, "growth_big", "compare", str(given.big), str(given.rounds))
        compare(small, big, (given.small, given.big))  # type: ignore[arg-type]
        if given.dead:
            for name, numbers in measured(place, "growth_dead", "bulk", str(given.dead)).items():
                print(f"\n{name} of {given.dead:,} dead orders")
                for what, value in numbers.items():
                    print(f"  {what:28}{value:12,.1f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["commits"]:
        commits()
    elif sys.argv[1:2] == ["compare"]:
        moment = _ready(int(sys.argv[2]), dead_every=19)
        claim_times = claims(int(sys.argv[3]))
        print(json.dumps({"claim": claim_times, **pages(moment, int(sys.argv[3]))}))
    elif sys.argv[1:2] == ["bulk"]:
        _ready(int(sys.argv[2]), dead_every=1)
        print(json.dumps({"freeze": freeze(int(sys.argv[2])), "export": export(int(sys.argv[2]))}))
    else:
        main()
