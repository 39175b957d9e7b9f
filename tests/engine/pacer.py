"""A real worker process at a queue with a delivery rate: claims as fast as it can for some time, and delivers at once.

`python -m tests.engine.pacer OWNER MS`: waits for a line on standard input, then prints the instant of each lease.
"""

import sys
import time

import django


def main(owner: str, ms: int) -> None:
    """Print the instant, in ms of the database's clock, of each lease that it got."""
    django.setup()
    from queue_app.services import queue

    print("ready", flush=True)
    sys.stdin.readline()
    end = time.monotonic() + ms / 1_000
    while time.monotonic() < end:
        leases = queue.claim(owner, limit=5, lease_ms=100_000)
        for lease in leases:
            print(lease.lease_until - 100_000)
            queue.finish(lease.id, lease.token, "ok")
        if not leases:
            time.sleep(0.002)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
