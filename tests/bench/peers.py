"""One other queue in an environment of its own: `python peers.py NAME DATABASE JOBS` prints its speed as one JSON line.

Started by `bench_peers`, without the product. Jobs do nothing; enqueue, claim and finish go through the peer's own public
ways. DATABASE is a file (SQLite) or a PostgreSQL address.
"""

import asyncio
import json
import logging
import sys
import time
from typing import Any

DONE: list[int] = []


def noop(number: int = 0) -> None:
    """The job."""
    DONE.append(number)


def _timed(act: Any, *arguments: Any) -> float:
    start = time.perf_counter()
    act(*arguments)
    return time.perf_counter() - start


def huey(path: str, jobs: int) -> tuple[float, float, str]:
    """SqliteHuey as it comes: WAL, synchronous FULL."""
    from huey import SqliteHuey

    queue = SqliteHuey(filename=path)
    task = queue.task()(noop)

    def fill() -> None:
        for number in range(jobs):
            task(number)

    def work() -> None:
        while (found := queue.dequeue()) is not None:
            queue.execute(found)

    return _timed(fill), _timed(work), "one"


def litequeue(path: str, jobs: int) -> tuple[float, float, str]:
    """As it comes: WAL, synchronous NORMAL, so the last commits may be lost at a power cut."""
    from litequeue import LiteQueue

    queue = LiteQueue(path)

    def fill() -> None:
        for number in range(jobs):
            queue.put(str(number))

    def work() -> None:
        while (found := queue.pop()) is not None:
            noop(int(found.data))
            queue.done(found.message_id, claim_id=found.claim_id)

    return _timed(fill), _timed(work), "one"


def pgqueuer(url: str, jobs: int, batch: int = 10) -> tuple[float, float, str]:
    """asyncpg driver, drain mode."""
    import asyncpg
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.qm import QueueManager
    from pgqueuer.queries import Queries
    from pgqueuer.types import QueueExecutionMode

    async def run() -> tuple[float, float]:
        connection = await asyncpg.connect(url)
        queries = Queries(AsyncpgDriver(connection))
        await queries.install()
        start = time.perf_counter()
        for number in range(jobs):
            await queries.enqueue("noop", str(number).encode(), 0)
        filled = time.perf_counter() - start
        manager = QueueManager(queries)

        @manager.entrypoint("noop")
        async def entry(job: Any) -> None:
            noop(int(job.payload))

        start = time.perf_counter()
        await manager.run(batch_size=batch, mode=QueueExecutionMode.drain)
        worked = time.perf_counter() - start
        await connection.close()
        return filled, worked

    return *asyncio.run(run()), str(batch)


def pgqueuer_one(url: str, jobs: int) -> tuple[float, float, str]:
    """As `pgqueuer`, a job at a time."""
    return pgqueuer(url, jobs, 1)


def procrastinate(url: str, jobs: int) -> tuple[float, float, str]:
    """One worker, ten jobs at once."""
    from procrastinate import App, PsycopgConnector

    app = App(connector=PsycopgConnector(conninfo=url))

    @app.task(name="noop")
    async def task(number: int) -> None:
        noop(number)

    async def run() -> tuple[float, float]:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()
            start = time.perf_counter()
            for number in range(jobs):
                await task.defer_async(number=number)
            filled = time.perf_counter() - start
            start = time.perf_counter()
            await app.run_worker_async(wait=False, concurrency=10, install_signal_handlers=False)
            return filled, time.perf_counter() - start

    return *asyncio.run(run()), "10"


PEERS = {peer.__name__: peer for peer in (huey, litequeue, pgqueuer, pgqueuer_one, procrastinate)}

if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    count = int(sys.argv[3])
    filling, working, at_once = PEERS[sys.argv[1]](sys.argv[2], count)
    if len(DONE) != count:
        raise SystemExit(f"{sys.argv[1]} did {len(DONE)} of {count} jobs")
    print(json.dumps({"enqueue": count / filling, "work": count / working, "at_once": at_once}))
