"""Pages and claims of one database, a round at a time: the two sizes take turns, so that a busy machine slows both.

`python -m tests.bench.growth_pages TOTAL` lays the orders, says "ready", and for each line on standard input does
everything once: {name: [ms, ms of the processor]} as a line of JSON.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench.growth_places import PASSWORD, environ_of, frozen_plan, ready

BASE_DIR = Path(__file__).resolve().parents[2]
PAGE = 50  # rows of a page of the list
DEEP = 10_000  # the page that is compared with the first
CLAIMS = 5  # to a round


def _begun() -> int:
    """A batch over all dead orders that has taken a few steps, so that its page shows it at work."""
    from django.contrib.auth.models import User

    from queue_app.models import Plan
    from queue_app.services import approvals, ticks

    if (known := Plan.objects.filter(state__in=("running", "paused", "halted")).first()) is not None:
        return known.pk
    plan = frozen_plan()
    tom, row = User.objects.get(username="tom"), Plan.objects.get(pk=plan)
    approvals.approve(
        tom, plan, round=1, digest=row.digest, note="BENCH-2", typed=str(row.planned),
        proof=approvals.confirm_identity(tom, PASSWORD),
    )  # fmt: skip
    assert ticks.begin(plan)
    for _ in range(3):
        ticks.tick(plan, bite=20, unlimited=True)
    return plan


def _addresses(now: int, plan: int) -> dict[str, str]:
    from queue_app.models import Job
    from queue_app.policy.cursors import Cursor
    from queue_app.policy.filters import Filter

    dead = Job.objects.filter(state="dead").order_by("changed_at_ms", "seq").values_list("changed_at_ms", "seq", "id")
    offset = max(0, min(DEEP * PAGE, dead.count()) - 2 * PAGE)
    at_ms, seq, job_id = dead[offset]
    cursor = Cursor(Filter().digest(), "oldest", back=False, as_of_ms=now + 1, at_ms=at_ms, seq=seq).encode()
    return {
        "overview": "/",
        "list": f"/quarantine/?size={PAGE}",
        f"list, page {offset // PAGE + 1:,}": f"/quarantine/?size={PAGE}&cursor={cursor}",
        "group": "/causes/snacks/exhausted/http_503/",
        "order": f"/orders/{job_id}/",
        "batch": f"/redrives/{plan}/",
        "batch, its orders": f"/redrives/{plan}/orders/",
    }


def _timed(action: Callable[[], object]) -> list[float]:
    start, used = time.perf_counter(), time.process_time()
    action()
    return [(time.perf_counter() - start) * 1_000, (time.process_time() - used) * 1_000]


def _claim() -> list[float]:
    """A claim of one order; the finish after it is not timed."""
    from queue_app.services import queue

    taken: list[queue.Lease] = []
    times = _timed(lambda: taken.extend(queue.claim("bench", limit=1)))
    queue.finish(taken[0].id, taken[0].token, "ok")
    return times


def main(total: int) -> None:
    """Lay, and answer rounds until standard input ends."""
    now = ready(total, dead_every=19)
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.get(username="tom"), backend="django.contrib.auth.backends.ModelBackend")
    addresses = _addresses(now, _begun())
    for address in addresses.values():
        assert client.get(address).status_code == 200, address
    print("ready", flush=True)
    for _line in sys.stdin:
        found = {"claim": sorted(_claim() for _ in range(CLAIMS))[CLAIMS // 2]}
        for name, address in addresses.items():
            found[name] = _timed(lambda address=address: client.get(address).content)  # type: ignore[misc]
        print(json.dumps(found), flush=True)


class Rounds:
    """A child process on one database."""

    def __init__(self, address: str, total: int) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.growth_pages", str(total)],
            env=environ_of(address), cwd=BASE_DIR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.times: dict[str, list[list[float]]] = {}
        assert self._line() == "ready\n", "the child gave up"

    def _line(self) -> str:
        assert self._child.stdout is not None
        return self._child.stdout.readline()

    def once(self) -> None:
        """One more round."""
        assert self._child.stdin is not None
        self._child.stdin.write("\n")
        self._child.stdin.flush()
        for name, times in json.loads(self._line()).items():
            self.times.setdefault(name, []).append(times)

    def end(self) -> None:
        """Let the child go."""
        self._child.communicate()


if __name__ == "__main__":
    main(int(sys.argv[1]))
