"""A sender that never rests: `python -m tests.backups.writer NAME` accepts NAME-1, NAME-2 ... and prints each when it is
acknowledged, until its standard input ends."""

import select
import sys

import django


def main(name: str) -> None:
    """One order, one line."""
    django.setup()
    from queue_app.services import queue

    n = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        n += 1
        assert queue.enqueue(f"{name}-{n}", 1) == "accepted"
        print(f"{name}-{n}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
