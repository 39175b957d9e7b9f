"""A worker process of the stories: one turn over real HTTP at a given instant.

`python -m tests.engine.storyteller OWNER NOW_MS URL [die]` prints the token it got and the answer of `run_once`; with `die`
it ends by `os._exit(73)` when the receiver has answered and before `finish`.
"""

import atexit
import os
import sys

import django


def main(owner: str, now: int, url: str, *, die: bool) -> None:
    """Claim one job, deliver it, finish it, or die between the last two."""
    django.setup()
    from queue_app.delivery.http import HttpDelivery
    from queue_app.services import queue

    atexit.register(lambda: print("atexit", flush=True))

    def deliver(lease: queue.Lease) -> object:
        print("token", lease.token, flush=True)
        try:
            answer = post(lease)
            print("receiver", answer, flush=True)
            if die:
                os._exit(73)
            return answer
        finally:
            print("finally", flush=True)

    with HttpDelivery(url, connect_ms=5_000, read_ms=5_000, total_ms=10_000) as post:
        print("state", queue.run_once(deliver, owner=owner, now_ms=now), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], die="die" in sys.argv[4:])
