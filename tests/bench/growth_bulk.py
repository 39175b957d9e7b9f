"""Freezing and exporting everything that is dead: time, write lock, memory, and what other commits have of it.

`python -m tests.bench.growth_bulk TOTAL` lays the orders and prints what it measured as lines of JSON. The commits beside
the export are judged in turns, some seconds with it and some without: the machine is as busy for both.
"""

import json
import os
import resource
import select
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.bench.growth_places import frozen_plan, ready

TURN_S = 3.0  # of reading, then of resting


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


def _p99(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.99)]


def freeze(dead: int) -> dict[str, float]:
    """All dead orders frozen into one plan."""
    held: list[float] = []
    with Memory() as memory:
        start, used = time.perf_counter(), time.process_time()
        frozen_plan(held)
        seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "seconds of the processor": time.process_time() - used,
        "orders per s": dead / seconds,
        "lock p50 ms": statistics.median(held),
        "lock p99 ms": _p99(held),
        "lock max ms": max(held),
        "memory MB": memory.growth_mb,
    }


class _Turns:
    """When a walk is read and when it rests, on the monotonic clock."""

    def __init__(self) -> None:
        self.reading: list[tuple[float, float]] = []
        self._began = time.perf_counter()

    def rest_when_due(self) -> None:
        now = time.perf_counter()
        if now - self._began >= TURN_S:
            self.end()
            time.sleep(TURN_S)
            self._began = time.perf_counter()

    def end(self) -> None:
        self.reading.append((self._began, time.perf_counter()))

    def split(self, commits: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
        """Those that fell into the reading, and the others."""
        beside: list[float] = []
        quiet: list[float] = []
        for began, ms in commits:
            inside = any(low <= began <= high for low, high in self.reading)
            (beside if inside else quiet).append(ms)
        return beside, quiet

    @property
    def seconds(self) -> float:
        return sum(high - low for low, high in self.reading)


def export(rows: int, **filters: str) -> dict[str, float]:
    """All dead orders, or those that a filter shows, as one CSV file for a client that takes what it gets; commits of another
    process beside it."""
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.get(username="tom"), backend="django.contrib.auth.backends.ModelBackend")
    other = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.growth_bulk", "commits"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert other.stdout is not None
    other.stdout.readline()
    used = time.process_time()
    with Memory() as memory:
        turns, size, written = _Turns(), 0, 0
        answer = client.post("/quarantine/export/", {"format": "csv", **filters})
        assert answer.status_code == 200, answer.status_code
        for chunk in answer.streaming_content:
            size, written = size + len(chunk), written + chunk.count(b"\r\n")
            turns.rest_when_due()
        turns.end()
    used = time.process_time() - used
    time.sleep(TURN_S)
    beside, quiet = turns.split([tuple(pair) for pair in json.loads(other.communicate("")[0])])
    assert written >= rows, written
    return {
        "seconds": turns.seconds,
        "seconds of the processor": used,
        "MB": size / 1_000_000,
        "rows per s": rows / turns.seconds,
        "memory MB": memory.growth_mb,
        "commit p50 ms quiet": statistics.median(quiet),
        "commit p50 ms meanwhile": statistics.median(beside),
        "commit p99 ms quiet": _p99(quiet),
        "commit p99 ms meanwhile": _p99(beside),
        "commit p99, ratio": _p99(beside) / _p99(quiet),
    }


def commits() -> None:
    """Accept an order about a hundred times a second until standard input ends; [when it began, ms] of each."""
    import django

    django.setup()
    from queue_app.services import queue

    queue.enqueue(f"c{os.getpid()}", 1)
    print("ready", flush=True)
    times: list[tuple[float, float]] = []
    while not (times and select.select([sys.stdin], [], [], 0.01)[0]):
        start = time.perf_counter()
        queue.enqueue(f"c{os.getpid()}-{len(times)}", 1)
        times.append((start, (time.perf_counter() - start) * 1_000))
    print(json.dumps(times))


if __name__ == "__main__":
    if sys.argv[1] == "commits":
        commits()
    else:
        ready(int(sys.argv[1]), dead_every=1)
        for measure in (export, freeze):  # each printed as it comes: the second one lasts
            print(json.dumps({measure.__name__: measure(int(sys.argv[1]))}), flush=True)
