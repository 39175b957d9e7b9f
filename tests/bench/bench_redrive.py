"""How fast orders are frozen and redriven: `python -m tests.bench.bench_redrive [ORDERS]` prints a table;
`python -m tests.bench.bench_redrive freeze 1000000` only makes a list of so many.

Each measure on a fresh database: an SQLite file, or one on the PostgreSQL server of DATABASE_URL. `full speed` ticks without
a rate, which no person can choose; the other rows are a real redriver beside a worker that asks for orders all the time.
"""

import bisect
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

ORDERS = 20_000


def _set_up() -> None:
    import django

    django.setup()
    from django.core.management import call_command

    from queue_app.services.accounts import set_person

    call_command("migrate", verbosity=0)
    set_person("oda", role="operator", password="a good password", active=True, see_payloads=None)
    set_person("tom", role="team_lead", password="a good password", active=True, see_payloads=None)


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def _frozen(n: int, first: int) -> tuple[int, dict[str, float]]:
    """Bury `n` orders and freeze them as a redriver does; the plan and how it went."""
    from django.contrib.auth.models import User

    from queue_app import clock
    from queue_app.policy.filters import Filter
    from queue_app.policy.selections import CHUNK, by_filter
    from queue_app.policy.terms import MAX_RATE_MJ, Terms
    from queue_app.services import freezing, plans
    from queue_app.store import database
    from tests.dead_rows import bury

    with database.write():
        bury(n, now_ms=clock.now_ms(), over_ms=3_600_000, groups=[("snacks", "permanent", "http_503")], first=first)
    plans.IN_REQUEST = -1
    asker = User.objects.get(username="oda")
    plan = plans.ask(asker, by_filter(Filter(queue="snacks")), Terms(MAX_RATE_MJ, canary=0), note="BENCH-1").plan
    size, took, locked, memory = CHUNK[0], [], [], _rss_mib()
    start = time.perf_counter()
    while True:
        before = time.perf_counter()
        progress = freezing.step(plan, size)
        took.append((time.perf_counter() - before) * 1_000)
        if progress is None:
            break
        locked.append(float(progress.held_ms))
        if progress.done:
            break
        size = progress.size
    seconds = time.perf_counter() - start
    return plan, {
        "freeze per s": n / seconds,
        "chunk p50 ms": _percentile(took, 0.5),
        "chunk p99 ms": _percentile(took, 0.99),
        "lock held p50 ms": _percentile(locked, 0.5),
        "lock held p99 ms": _percentile(locked, 0.99),
        "lock held max ms": max(locked, default=0.0),
        "memory grew MiB": _rss_mib() - memory,
    }


def _rss_mib() -> float:
    """The memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def freeze(n: int) -> dict[str, float]:
    """Only the making of a list: how fast, how long the write lock is held by a chunk, and what memory it takes."""
    _plan, numbers = _frozen(n, 0)
    return numbers


def _approved(plan: int, rate_mj: int | None = None) -> None:
    from django.contrib.auth.models import User

    from queue_app.models import Plan
    from queue_app.policy.approvals import Tightening
    from queue_app.services import approvals

    lead = User.objects.get(username="tom")
    row = Plan.objects.get(pk=plan)
    approvals.approve(
        lead,
        plan,
        round=1,
        digest=row.digest,
        note="BENCH-2",
        typed=str(row.planned),
        proof=approvals.confirm_identity(lead, "a good password"),
        tightening=Tightening(rate_mj=rate_mj),
    )


def full_speed(n: int, bite: int | None) -> dict[str, float]:
    """Tick after tick without rate and rest, `bite` orders each or, None, as many as a redriver takes; redrives per second
    and how long a tick takes and holds the write lock."""
    from queue_app.policy.buckets import BITE, next_bite
    from queue_app.services import ticks

    plan, numbers = _frozen(n, 0)
    _approved(plan)
    assert ticks.begin(plan)
    took: list[float] = []
    held: list[float] = []
    bites: list[float] = []
    size = bite or BITE[1] // 4
    start = time.perf_counter()
    while True:
        before = time.perf_counter()
        done = ticks.tick(plan, bite=size, unlimited=True)
        took.append((time.perf_counter() - before) * 1_000)
        held.append(float(done.held_ms))
        bites.append(float(size))
        size = bite or next_bite(size, done.held_ms)
        if done.due_ms is None:
            break
    seconds = time.perf_counter() - start
    assert done.state == "ended", done
    return numbers | {
        "redrives per s": n / seconds,
        "tick p50 ms": _percentile(took, 0.5),
        "tick p99 ms": _percentile(took, 0.99),
        "tick held p50 ms": _percentile(held, 0.5),
        "tick held p99 ms": _percentile(held, 0.99),
        "bite p50": _percentile(bites, 0.5),
    }


def _claiming(seconds: float, stock: int, ready: Any, answers: Any) -> None:
    """Claim one order and finish it, about 80 times a second; `stock` orders are there so that claims find work."""
    import django

    django.setup()
    from queue_app.services import queue

    if stock:
        queue.enqueue_many([{"id": f"s{time.monotonic_ns()}-{k}", "quantity": 1} for k in range(stock)])
    ready.set()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        before = time.perf_counter()
        leases = queue.claim("bench", limit=1)
        times.append((time.perf_counter() - before) * 1_000)
        for lease in leases:
            queue.finish(lease.id, lease.token, "ok")
        time.sleep(0.01)
    answers.put((_percentile(times, 0.5), _percentile(times, 0.99), max(times)))


def at_rate(rate: int, seconds: float, redrivers: int) -> dict[str, float]:
    """A batch at so many jobs/s by real redrivers, beside one worker that claims: the rate met and the claim's delay."""
    from queue_app.models import Redrive

    n = int(rate * (seconds + 5))
    plan, _ = _frozen(n, 0)
    context = multiprocessing.get_context("spawn")
    answers, ready = context.Queue(), context.Event()

    def claims(stock: int) -> tuple[float, float, float]:
        ready.clear()
        child = context.Process(target=_claiming, args=(seconds, stock, ready, answers))
        child.start()
        ready.wait()
        found = answers.get()
        child.join()
        return found

    idle = claims(2_000)
    _approved(plan, rate * 1_000)
    children = [
        subprocess.Popen([sys.executable, "manage.py", "redriver", "--owner", f"bench-{k}"], stderr=subprocess.DEVNULL)
        for k in range(redrivers)
    ]
    while not Redrive.objects.exists():
        time.sleep(0.05)
    busy = claims(0)
    stamps = list(Redrive.objects.order_by("id").values_list("at_ms", flat=True))
    for child in children:
        child.terminate()
        child.wait()
    steady = [at for at in stamps if stamps[0] + 1_000 <= at < stamps[0] + 1_000 + int((seconds - 2) * 1_000)]
    worst = max(sum(at <= other < at + 1_000 for other in stamps) for at in stamps[:: max(1, rate // 5)])
    return {
        "asked per s": rate,
        "met per s": len(steady) / (seconds - 2),
        "most in any second": worst,
        "claim idle p99 ms": idle[1],
        "claim busy p50 ms": busy[0],
        "claim busy p99 ms": busy[1],
        "claim busy max ms": busy[2],
    }


def crowd(n: int, rate: int) -> dict[str, float]:
    """Two redrivers and four workers on one batch: every order once, delivered, within the rate; how long it took."""
    from queue_app.models import Job, Plan, Redrive

    plan, _ = _frozen(n, 0)
    _approved(plan, rate * 1_000)
    start = time.perf_counter()
    redrivers = [
        subprocess.Popen([sys.executable, "manage.py", "redriver", "--owner", f"bench-{k}"], stderr=subprocess.DEVNULL)
        for k in range(2)
    ]
    workers = [subprocess.Popen([sys.executable, "-m", "tests.redrive.eager", f"w{k}", str(n)]) for k in range(4)]
    for child in workers:
        assert child.wait() == 0
    seconds = time.perf_counter() - start
    for child in redrivers:
        child.terminate()
        child.wait()
    stamps = list(Redrive.objects.order_by("at_ms").values_list("at_ms", flat=True))
    row = Plan.objects.get(pk=plan)
    assert (row.state, row.redriven, len(stamps)) == ("ended", n, n)
    assert len(set(Redrive.objects.values_list("job_id", flat=True))) == n
    assert Job.objects.filter(state="done").count() == n
    worst = max(bisect.bisect_left(stamps, at + 1_000) - k for k, at in enumerate(stamps))
    return {"asked per s": rate, "done per s": n / seconds, "most in any second": worst}


MEASURES: dict[str, Callable[..., dict[str, float]]] = {
    "full_speed": full_speed,
    "at_rate": at_rate,
    "crowd": crowd,
    "freeze": freeze,
}


@contextmanager
def _database() -> Iterator[dict[str, str]]:
    """The variables of a database of one measure's own: on the server of DATABASE_URL, or a file where there is none."""
    url = os.environ.get("DATABASE_URL", "")
    if not url.startswith("postgres"):
        yield {}
        return
    name = f"bench_{time.time_ns()}"
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        try:
            yield {"DATABASE_URL": urlsplit(url)._replace(path=f"/{name}").geturl()}
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _fresh(name: str, *arguments: object) -> dict[str, float]:
    """One measure in a process and a database of its own."""
    with tempfile.TemporaryDirectory(prefix="snackops-bench-") as folder, _database() as variables:
        environ = {
            **os.environ,
            **variables,
            "SNACKOPS_DATA": folder,
            "DJANGO_SETTINGS_MODULE": "snackops.settings",
            "SNACKOPS_LOG_LEVEL": "ERROR",
        }
        command = [sys.executable, "-m", "tests.bench.bench_redrive", "--measure", json.dumps([name, *arguments])]
        done = subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main(arguments: list[str]) -> None:
    """Print one row per measure."""
    if arguments[:1] == ["--measure"]:
        _set_up()
        name, *rest = json.loads(arguments[1])
        print(json.dumps(MEASURES[name](*rest)))
        return
    if arguments[:1] == ["freeze"]:
        n = int(arguments[1])
        _print(f"a list of {n:,}", _fresh("freeze", n))
        return
    n = int(arguments[0]) if arguments else ORDERS
    for title, name, *rest in (
        ("full speed, a redriver's bite", "full_speed", n, None),
        *((f"full speed, bite {bite}", "full_speed", n, bite) for bite in (200, 1_000)),
        ("1/s, 1 redrivers", "at_rate", 1, 62, 1),
        *((f"{rate}/s, {k} redrivers", "at_rate", rate, 20, k) for rate, k in ((50, 1), (500, 1), (500, 2))),
        ("two redrivers, four workers", "crowd", n, 500),
    ):
        _print(title, _fresh(name, *rest))


def _print(title: str, row: dict[str, float]) -> None:
    print(title)
    for name, value in row.items():
        print(f"  {name:<22} {value:>12,.1f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
