"""A worker that never rests, for tests of what others do meanwhile: `python -m tests.growth.busy NAME`.

It accepts, claims and ends orders in every way until its standard input ends, then says how many moves it made.
"""

import select
import sys

import django


def main(name: str) -> None:
    """Work until told to stop."""
    django.setup()
    from queue_app.services import queue

    ends = [("ok", ""), ("permanent", "http_422"), ("retry", "http_503"), ("ok", ""), ("permanent", "http_410")]
    moves = 0
    while not (moves and select.select([sys.stdin], [], [], 0)[0]):
        queue.enqueue_many([{"id": f"{name}-{moves}-{k}", "quantity": 1, "max_attempts": 2} for k in range(5)])
        leases = queue.claim(name, limit=6)
        queue.finish_many(
            [queue.Result(one.id, one.token, *ends[(moves + k) % len(ends)]) for k, one in enumerate(leases)]
        )
        moves += 1
        if moves == 1:
            print("working", flush=True)
    print(moves, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
