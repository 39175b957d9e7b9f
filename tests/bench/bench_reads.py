"""How long each read takes at 20 and at 100,000 dead orders: `pytest tests/bench/bench_reads.py -s` prints a table.

Not collected by a plain run (its name does not begin with test_). Times are medians in ms on the machine at hand.
"""

import statistics
import time
from collections.abc import Callable

import pytest

from queue_app.policy.filters import Filter
from queue_app.policy.windows import DAY_MS, HOUR_MS
from queue_app.reads import dead, figures, groups
from tests.dead_rows import bury, finish

NOW = 1_800_000_000_000
ROUNDS = 15
READS: dict[str, Callable[[], object]] = {
    "overview: all figures": lambda: figures.figures(NOW),
    "groups": lambda: groups.groups(NOW),
    "page: everything": lambda: _page(Filter()),
    "page: one queue": lambda: _page(Filter(queue="snacks")),
    "page: one group": lambda: _page(Filter("snacks", "exhausted", "http_503")),
    "page: a code in two queues": lambda: _page(Filter(code="http_503")),
    "page: last three days and a bit": lambda: _page(Filter(died_from_ms=NOW - 3 * DAY_MS - 12_345)),
    "page: beginning of an id": lambda: _page(Filter(id_prefix="o99")),
    "page: redriven before": lambda: _page(Filter(redriven=True)),
    "page: nothing matches a row's own column": lambda: _page(Filter(attempts_min=50)),
    "page: not looked at": lambda: _page(Filter(looked=False)),
}


def _page(wanted: Filter) -> None:
    dead.stretch(wanted, NOW, None, 51, newest_first=True)
    dead.count(wanted, NOW)


def _median_ms(read: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        read()
        times.append((time.perf_counter() - start) * 1_000)
    return statistics.median(times)


@pytest.mark.timeout(600)
@pytest.mark.django_db(transaction=True)  # PostgreSQL slows down when one transaction moves a counter too often
def test_print_the_table() -> None:
    bury(20, now_ms=NOW - HOUR_MS)
    few = {name: _median_ms(read) for name, read in READS.items()}
    bury(99_980, now_ms=NOW, first=1_000)
    finish(100_000, now_ms=NOW, first=500_000)
    print(f"\n{'median ms':45}{'20 dead':>10}{'100,000 dead':>14}")
    for name, read in READS.items():
        print(f"{name:45}{few[name]:10.1f}{_median_ms(read):14.1f}")
