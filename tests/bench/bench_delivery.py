"""Deliveries per second with the queue and without: `python -m tests.bench.bench_delivery [ORDERS [ROUNDS]]`.

Both sides post the same orders with the same adapter in the same number of threads to a receiver that does nothing, in a
process of its own. The side without the queue takes its orders from memory and forgets the answers. On a fresh SQLite
database, or with DATABASE_URL on that (empty) one. The rounds alternate, so that a machine's mood meets both.
"""

import asyncio
import itertools
import multiprocessing
import os
import statistics
import sys
import tempfile
import threading
import time
from typing import Any

ORDERS, ROUNDS, CONCURRENCY = 5_000, 5, 8


class _Nothing(asyncio.Protocol):
    """Says yes to every order."""

    def __init__(self) -> None:
        self._got = b""
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._got += data
        while (end := self._got.find(b"\r\n\r\n")) >= 0:
            head = self._got[:end].lower()
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            if len(self._got) < end + 4 + length:
                return
            key = self._got[:end].partition(b"Idempotency-Key: ")[2].partition(b"\r\n")[0]
            self._got = self._got[end + 4 + length :]
            body = b'{"ok": true, "id": "%s"}' % key
            self._transport.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
            )


def _serve(port: Any) -> None:
    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(_Nothing, "127.0.0.1", 0)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


def _rss_mb() -> float:
    with open("/proc/self/statm") as statm:  # noqa: PTH123
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _without(url: str, n: int) -> tuple[float, float]:
    """Seconds by the clock and of this process's CPU for `n` deliveries without the queue."""
    from queue_app.delivery.http import HttpDelivery
    from queue_app.policy.attempts import Lease

    lock, orders = threading.Lock(), iter(range(n))

    def run() -> None:
        while True:
            with lock:
                k = next(orders, None)
            if k is None:
                return
            deliver(Lease(f"bare-{k}", "snacks", 1, '{"item":"ramen"}', 1, 1, 0, 0))

    with HttpDelivery(url, connect_ms=5_000, read_ms=5_000, total_ms=10_000) as deliver:
        threads = [threading.Thread(target=run) for _ in range(CONCURRENCY)]
        begun, cpu = time.perf_counter(), time.process_time()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - begun, time.process_time() - cpu


_names = itertools.count()


def _with(url: str, n: int) -> tuple[float, float]:
    """The same with the queue, from the first claim to the last order's `done`."""
    from queue_app.delivery.http import HttpDelivery
    from queue_app.delivery.worker import Settings, Worker
    from queue_app.services import queue

    name = next(_names)
    for first in range(0, n, 500):
        orders = range(first, min(first + 500, n))
        queue.enqueue_many([{"id": f"q{name}-{k}", "quantity": 1, "payload": {"item": "ramen"}} for k in orders])
    with HttpDelivery(url, connect_ms=5_000, read_ms=5_000, total_ms=10_000) as deliver:
        worker = Worker(deliver, Settings(f"bench-{name}", concurrency=CONCURRENCY, until_idle=True))
        begun, cpu = time.perf_counter(), time.process_time()
        tally = worker.run()
        spent = time.perf_counter() - begun, time.process_time() - cpu
    assert tally.ok == n, tally
    return spent


def _measure(url: str, n: int, rounds: int, answers: Any) -> None:
    import logging

    import django

    django.setup()
    from django.core.management import call_command

    logging.getLogger().setLevel(logging.ERROR)
    call_command("migrate", verbosity=0)
    _without(url, n // 5)
    _with(url, n // 5)
    start_mb, found = _rss_mb(), []
    for _round in range(rounds):
        found.append((_without(url, n), _with(url, n)))
    answers.send((found, start_mb, _rss_mb()))


def main() -> None:
    """Print the medians of the rounds, their ratio, and the memory of the worker's process."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else ORDERS
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "snackops.settings")
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SNACKOPS_DATA"] = folder
        os.environ.setdefault("DATABASE_URL", f"sqlite:///{folder}/bench.sqlite3")
        port, port_in = context.Pipe()
        receiver = context.Process(target=_serve, args=(port_in,), daemon=True)
        receiver.start()
        url = f"http://127.0.0.1:{port.recv()}"
        answers, answers_in = context.Pipe()
        worker = context.Process(target=_measure, args=(url, n, rounds, answers_in))
        worker.start()
        found, start_mb, end_mb = answers.recv()
        worker.join()
        receiver.terminate()
    bare, queued = ([n / pair[side][0] for pair in found] for side in (0, 1))
    ratios = [fast / slow for slow, fast in zip(bare, queued, strict=True)]
    cpu = [statistics.median(pair[side][1] / n * 1e6 for pair in found) for side in (0, 1)]
    print(f"{n:,} orders a round, {rounds} rounds, {CONCURRENCY} at once, load {os.getloadavg()[0]:.1f}")
    print(f"without the queue  {statistics.median(bare):8,.0f}/s {cpu[0]:8,.0f} us CPU each")
    print(f"with the queue     {statistics.median(queued):8,.0f}/s {cpu[1]:8,.0f} us CPU each")
    print(f"ratio              {statistics.median(ratios):8.2f}   ({', '.join(f'{ratio:.2f}' for ratio in ratios)})")
    print(f"ratio of CPU       {cpu[0] / cpu[1]:8.2f}")
    print(f"memory             {start_mb:8.1f} MB at the start, {end_mb:.1f} MB at the end")


if __name__ == "__main__":
    main()
