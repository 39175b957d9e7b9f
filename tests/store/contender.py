"""A real worker process that competes for the one write lock: `python -m tests.store.contender OWNER SECONDS LIMIT`.

Waits for a line on standard input, then finishes and claims back to back. Prints jobs done and its longest wait in ms.
"""

import sys
import time

import django


def main(owner: str, seconds: float, limit: int) -> None:
    """Compete for some seconds."""
    django.setup()
    from queue_app.services import queue

    queue.claim(owner, queue="snacks", now_ms=0)  # connected, nothing due
    print("ready", flush=True)
    sys.stdin.readline()
    end, done, longest = time.monotonic() + seconds, 0, 0.0
    results: list[queue.Result] = []
    while time.monotonic() < end:
        begun = time.monotonic()
        done += sum(queue.finish_many(results)) if limit == 1 else 0
        answers, leases = queue.finish_and_claim([] if limit == 1 else results, owner, limit=limit)
        longest = max(longest, time.monotonic() - begun)
        done += sum(answers)
        results = [queue.Result(lease.id, lease.token, "ok") for lease in leases]
    print(done, round(longest * 1_000), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
