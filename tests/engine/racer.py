"""A real worker process of the race: claims and finishes until nothing is left, and writes down what it was given.

`python -m tests.engine.racer OWNER NOW_MS`: waits for a line on standard input; NOW_MS 0 means the real clock. Every fifth
lease is dropped as if the worker had died, so that the same jobs are handed out again under higher tokens.
"""

import sys

import django

from tests.waiting import came_true


def main(owner: str, now: int) -> None:
    """Print `id token finished` for each lease."""
    django.setup()
    from queue_app.models import Job
    from queue_app.services import queue

    print("ready", flush=True)
    sys.stdin.readline()
    dropped = 0
    while True:
        at = now + dropped if now else None
        leases = queue.claim(owner, limit=3, lease_ms=1 if now else 20, now_ms=at)
        for lease in leases:
            drop = sum(lease.id.encode()) % 5 == lease.token % 5 and lease.token < 4
            ended = not drop and queue.finish(lease.id, lease.token, "ok", now_ms=at)
            print(lease.id, lease.token, int(ended), flush=True)
        if leases:
            continue
        if not Job.objects.filter(state__in=["pending", "leased"]).exists():
            return
        dropped += bool(now)  # at one and the same instant nothing is due any more: both go on to the next one
        came_true(lambda: not Job.objects.filter(state="leased").exists(), limit_s=0.005, look_s=0.001)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
