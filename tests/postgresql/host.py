"""A process of a host: `python -m tests.postgresql.host worker|redriver OWNER`. Ends when its standard input does.

The worker delivers by writing `id token` on standard output, which the test reads as the receiver's record.
"""

import os
import sys
import threading
from typing import Any

import django


def main(kind: str, owner: str) -> None:
    """Work until standard input ends."""
    django.setup()
    from queue_app import clock
    from queue_app.delivery import redriver as redrivers
    from queue_app.delivery import worker as workers
    from queue_app.delivery.redriver import Redriver
    from queue_app.delivery.worker import Settings, Worker

    ahead_ms = int(os.environ.get("TESTS_CLOCK_AHEAD_MS", "0"))
    real = clock.now_ms
    clock.now_ms = lambda: real() + ahead_ms  # this host's clock is wrong
    workers.TROUBLE_MS = redrivers.TROUBLE_MS = (50, 200)  # tests are in a hurry
    redrivers.BEAT_MS = 200

    def deliver(lease: Any) -> bool:
        print(lease.id, lease.token, flush=True)
        return True

    if kind == "worker":
        # a few at a time, so that many transactions are there to be cut
        program: Any = Worker(deliver, Settings(owner, prefetch=3, lease_ms=1_500, delivery_ms=100))
    else:
        program = Redriver(owner)
    threading.Thread(target=lambda: (sys.stdin.read(), program.stop()), daemon=True).start()
    print("ready", flush=True)
    program.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
