"""Comparing counters with the rows that they count: what is wrong, and by how much.

A counter and its rows change in the same transaction, so the difference between them does not move while work goes on: one
that was measured at any instant is right to be added at any later one.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from queue_app.policy.windows import HOUR_MS, MINUTE_MS

Place = tuple[str | int, ...]
"""counts: queue, state, stage, reason, code; flows: span, start, queue, reason, code; results: batch, queue, reason, code,
outcome; tallies: name."""
Group = tuple[str, str, str]

COLUMNS = {
    "counts": ("queue", "state", "stage", "reason", "code"),
    "flows": ("span_ms", "start_ms", "queue", "reason", "code"),
    "results": ("batch", "queue", "reason", "code", "outcome"),
    "tallies": ("name",),
}
"""Table of counters -> the columns of its places, in order."""


@dataclass(slots=True)
class Numbers:
    """What counters say, or what rows say: value by place, for `n`, `last_at_ms`, `died`, `left_n` and `still`."""

    n: dict[str, Counter[Place]] = field(
        default_factory=lambda: {name: Counter() for name in ("counts", "results", "tallies")}
    )
    last: dict[Place, int] = field(default_factory=dict)
    flows: dict[str, Counter[Place]] = field(
        default_factory=lambda: {name: Counter() for name in ("died", "left_n", "still")}
    )
    uncertain: set[Group] = field(default_factory=set)
    """Groups with a redriven order of which no row says when it had died: only their sum of deaths is compared."""

    def saw(self, place: Place, at_ms: int | None) -> None:
        """A row at this place of `counts` changed last at an instant."""
        if at_ms is not None:
            self.last[place] = max(at_ms, self.last.get(place, 0))

    def flow(self, column: str, at_ms: int, group: Group, n: int, minutes_from: int) -> None:
        """Count into the hour, and into the minute when minutes are kept that far back."""
        self.flows[column][HOUR_MS, at_ms - at_ms % HOUR_MS, *group] += n
        if at_ms - at_ms % MINUTE_MS >= minutes_from:
            self.flows[column][MINUTE_MS, at_ms - at_ms % MINUTE_MS, *group] += n


@dataclass(frozen=True, slots=True)
class Difference:
    """One counter that is wrong. `column`: n, died, left_n, still, or last_at_ms (which is only ever lifted)."""

    table: str
    place: Place
    column: str
    stored: int
    counted: int

    @property
    def delta(self) -> int:
        """What must be added."""
        return self.counted - self.stored


def differences(stored: Numbers, counted: Numbers) -> list[Difference]:
    """Every counter that disagrees with its rows, in the order of tables and places."""
    found = []
    for table in ("counts", "results"):
        found += _differing(table, "n", stored.n[table], counted.n[table])
    for name, least in sorted(counted.n["tallies"].items()):  # no rows are kept of most; those that are give the least
        if stored.n["tallies"][name] < least:
            found.append(Difference("tallies", name, "n", stored.n["tallies"][name], least))
    for place, at_ms in sorted(counted.last.items()):
        if stored.last.get(place, 0) < at_ms:
            found.append(Difference("counts", place, "last_at_ms", stored.last.get(place, 0), at_ms))
    for column in ("left_n", "still"):
        found += _differing("flows", column, stored.flows[column], counted.flows[column])
    found += _deaths(stored.flows["died"], counted.flows["died"], counted.uncertain)
    return found


def _differing(table: str, column: str, stored: Mapping[Place, int], counted: Mapping[Place, int]) -> list[Difference]:
    return [
        Difference(table, place, column, stored.get(place, 0), counted.get(place, 0))
        for place in sorted({*stored, *counted})
        if stored.get(place, 0) != counted.get(place, 0)
    ]


def _deaths(stored: Counter[Place], counted: Counter[Place], uncertain: set[Group]) -> list[Difference]:
    """A group of which some death has no instant is left as it is when its sum over all hours is right."""
    sums: Counter[Group] = Counter()
    for sign, numbers in ((1, counted), (-1, stored)):
        for (span, _start, *group), n in numbers.items():
            if span == HOUR_MS:
                sums[tuple(group)] += sign * n  # type: ignore[index]
    left = {group for group in uncertain if not sums[group]}
    return [one for one in _differing("flows", "died", stored, counted) if one.place[2:] not in left]
