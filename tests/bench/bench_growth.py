"""What growth costs: `python -m tests.bench.bench_growth [--small N] [--big N] [--dead N] [--rounds N]`.

Compares the same product at a small and at a big number of orders (nine tenths done, a twentieth dead, a twentieth waiting):
the claim, and the pages overview, list, group, order and batch; the list's page 10,000 with its first; and, on a database of
dead orders only, exporting all of them and freezing all of them (time, write lock, memory, other commits meanwhile).

On SQLite (files in a temporary folder, or below --folder):
    .venv/bin/python -m tests.bench.bench_growth --small 10000 --big 10000000 --dead 1000000
On PostgreSQL, durable:
    PG_DURABLE=1 .venv/bin/python -m tests.pgserver \\
        .venv/bin/python -m tests.bench.bench_growth --small 10000 --big 10000000 --dead 1000000
A quick try of the whole: --small 10000 --big 100000 --dead 100000 (a minute or two).

The big run needs about 6 GB of disk and up to an hour. The two sizes take turns, round by round, each by a warm server in a
process of its own, and the processor's time (on PostgreSQL without the server's) stands beside the time that passed: so
a shared machine says something, too. With --at SMALL BIG DEAD addresses of databases are given that are laid if they are
empty, and kept.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.growth_pages import BASE_DIR, Rounds
from tests.bench.growth_places import Place, environ_of

NAMES = ("growth_small", "growth_big", "growth_dead")
Times = dict[str, list[list[float]]]


@contextmanager
def _database(place: Place, name: str, given: str | None) -> Iterator[str]:
    """An address, laid and removed unless it was given."""
    if given:
        yield given
        return
    try:
        yield place.lay(name)
    finally:
        place.remove(name)


def _turns(addresses: tuple[str, str], sizes: tuple[int, int], rounds: int) -> tuple[Times, Times]:
    """The two sizes in turn."""
    children: list[Rounds] = []
    try:
        for address, size in zip(addresses, sizes, strict=True):
            children.append(Rounds(address, size))
        for _ in range(rounds):
            for child in children:
                child.once()
    finally:
        for child in children:
            child.end()
    return children[0].times, children[1].times


def _median(times: list[list[float]], which: int) -> float:
    return statistics.median(pair[which] for pair in times)


def _p95(times: list[list[float]]) -> float:
    ordered = sorted(pair[0] for pair in times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]


def _compare(small: Times, big: Times, sizes: tuple[int, int]) -> None:
    """The table of medians, and the ratios of passed and of the processor's time."""
    heads = f"{'median':>9}{'p95':>9}{'proc.':>9}"
    print(f"\n{'ms':22}{f'{sizes[0]:,} orders':>27}{f'{sizes[1]:,} orders':>27}{'ratio':>9}{'proc.':>9}")
    print(f"{'':22}{heads}{heads}")
    deep = next(name for name in big if name.startswith("list, page"))
    for name, times in big.items():
        before = small.get(name) or small["list"]  # the deep page has another number at the small size: against page 1
        row = [f"{_median(t, 0):9.2f}{_p95(t):9.2f}{_median(t, 1):9.2f}" for t in (before, times)]
        ratios = [_median(times, which) / _median(before, which) for which in (0, 1)]
        print(f"{name:22}{''.join(row)}{ratios[0]:9.2f}{ratios[1]:9.2f}")
    ratios = [_median(big[deep], which) / _median(big["list"], which) for which in (0, 1)]
    print(f"{deep} over the first page: {ratios[0]:.2f}, of the processor's time {ratios[1]:.2f}")


def _bulk(address: str, dead: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.bench.growth_bulk", str(dead)], env=environ_of(address), cwd=BASE_DIR,
        stdout=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        for line in child.stdout:
            ((name, numbers),) = json.loads(line).items()
            print(f"\n{name} of {dead:,} dead orders")
            for what, value in numbers.items():
                print(f"  {what:28}{value:12,.1f}", flush=True)


def main() -> None:
    """Everything in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=10_000)
    parser.add_argument("--big", type=int, default=100_000, help="0: leave the comparison out")
    parser.add_argument(
        "--dead", type=int, default=100_000, help="dead orders to freeze and to export; 0: leave it out"
    )
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--folder", type=Path, help="where SQLite's files go (default a temporary folder)")
    parser.add_argument("--at", nargs=3, default=[None] * 3, metavar="ADDRESS", help="of small, big and dead")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        place, sizes = Place(Path(folder)), (given.small, given.big)
        if given.big:
            with _database(place, NAMES[0], given.at[0]) as small, _database(place, NAMES[1], given.at[1]) as big:
                _compare(*_turns((small, big), sizes, given.rounds), sizes)
        if given.dead:
            with _database(place, NAMES[2], given.at[2]) as address:
                _bulk(address, given.dead)


if __name__ == "__main__":
    main()
