"""What the overview says first: one headline, and what needs a person now (DESIGN section 12).

Pure values: a kind and its numbers. The words are the templates'.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from queue_app.policy.figures import Bucket, Figures, GroupFigures, Surge
from queue_app.policy.filters import Filter

MOST = 0.8  # a wave is called one when it brought at least this share of the quarantine
CAUSES = 0.9  # and its causes are the groups that make up this share of the wave
LULL = 0.1  # a wave's beginning: before it, less died than this share of its mean
ATTENTION = ("disk_full", "locked")  # why a living process waits and a person should know


@dataclass(frozen=True, slots=True)
class Headline:
    """`kind`: dead (orders in quarantine), trouble (none, but something else needs a person), calm, or empty (no order
    was ever accepted).

    `total` in quarantine; `wave` of them came `since_ms` (None: no such wave; then the oldest died at `oldest_ms`) from
    `causes` causes, the first being `cause`, and the rest of it from `smaller` more; `growing`: some died in the last five
    minutes; `looked`: nobody, part (at some orders of a cause only), some (of the causes) or all; `unlooked`: how many
    nobody looked at.
    """

    kind: str
    total: int = 0
    wave: int = 0
    since_ms: int | None = None
    oldest_ms: int | None = None
    causes: int = 0
    smaller: int = 0
    cause: tuple[str, str, str] | None = None
    growing: bool = False
    recent: int = 0
    looked: str = "all"
    unlooked: int = 0
    looked_at_ms: int | None = None
    looked_by: str = ""
    last_delivery_ms: int | None = None

    @property
    def filter(self) -> Filter:
        """The orders that it speaks of first: the wave, within its cause when there is one."""
        if self.cause is not None and self.causes == 1:
            queue, reason, code = self.cause
            return Filter(queue=queue, reason=reason, code=code, died_from_ms=self.since_ms)
        return Filter(died_from_ms=self.since_ms)


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that needs a person. `kind`:

    no_worker (`queue`, `n` waiting), no_redriver (`n` redrives stand still), disk_full or locked (`process`), silent
    (`process`), lease_over (`n`), unproved (`n`), unseen (`group`, `n`, since its first death at `since_ms`), died_since
    (`group`, `n` since the look).
    `filter`: exactly the orders counted, where these are in quarantine.
    """

    kind: str
    n: int = 0
    queue: str = ""
    process: str = ""
    group: GroupFigures | None = None
    since_ms: int | None = None
    filter: Filter | None = None


def headline(figures: Figures) -> Headline:
    """The one sentence that somebody woken at 3 a.m. reads."""
    if not figures.states.dead:
        kind = "empty" if not figures.states.total else "trouble" if needs(figures) else "calm"
        return Headline(kind, last_delivery_ms=figures.last_delivery_ms)
    causes = wave_causes(figures.surge) if figures.surge else figures.groups_by_size
    return Headline(
        kind="dead",
        total=figures.states.dead,
        wave=figures.surge.n if figures.surge else 0,
        since_ms=figures.surge.since_ms if figures.surge else None,
        oldest_ms=figures.oldest.since_ms if figures.oldest else None,
        causes=len(causes),
        smaller=len(figures.surge.groups) - len(causes) if figures.surge else 0,
        cause=causes[0] if causes else None,
        growing=figures.recent > 0,
        recent=figures.recent,
        looked=_looked(figures),
        unlooked=figures.unlooked,
        looked_at_ms=figures.look.at_ms if figures.look else None,
        looked_by=figures.look.by_name if figures.look else "",
        last_delivery_ms=figures.last_delivery_ms,
    )


def _looked(figures: Figures) -> str:
    if not figures.unlooked:
        return "all"
    if any(group.look for group in figures.groups):
        return "some"
    return "part" if any(group.part for group in figures.groups) else "nobody"


def needs(figures: Figures) -> list[Need]:
    """What needs a person now, the most urgent first: nothing moves, then unknown answers, then causes by size."""
    found = [*_stopped(figures), *_processes(figures)]
    if figures.unknown.lease_over:
        found.append(Need("lease_over", figures.unknown.lease_over))
    if figures.unknown.unproved:
        found.append(Need("unproved", figures.unknown.unproved))
    groups = [group for group in figures.groups if group.since_look]
    for group in sorted(groups, key=lambda group: (group.look is not None, -group.since_look)):
        kind = "died_since" if group.look else "unseen"
        found.append(Need(kind, group.since_look, group=group, since_ms=group.since_look_ms, filter=group.since_filter))
    return found


def _stopped(figures: Figures) -> list[Need]:
    waiting = [queue for queue in figures.queues if queue.states.pending and not queue.workers and not queue.paused]
    found = [Need("no_worker", queue.states.pending, queue=queue.name) for queue in waiting]
    if figures.carried and not any(one.kind == "redriver" and one.state == "alive" for one in figures.processes):
        found.append(Need("no_redriver", figures.carried))
    return found


def _processes(figures: Figures) -> list[Need]:
    hampered = [
        Need(process.detail, process=process.name)
        for process in figures.processes
        if process.state == "alive" and process.detail in ATTENTION
    ]
    silent = [
        Need("silent", process=process.name, since_ms=process.seen_at_ms)
        for process in figures.processes
        if process.state == "silent"
    ]
    return hampered + silent


# --- the wave -------------------------------------------------------------------------------------------------------


def surge_hour_ms(hours: Sequence[Bucket], total: int) -> int | None:
    """The hour in which the wave began that brought most of `total`; None when it is older than `hours` or no wave."""
    n, place = 0, len(hours)
    while place and n < MOST * total:
        place -= 1
        n += hours[place].still
    if not total or n < MOST * total:
        return None
    while place and hours[place - 1].still >= LULL * n / (len(hours) - place):
        place -= 1
        n += hours[place].still
    return hours[place].start_ms


def surge_minute_ms(minutes: Sequence[Bucket]) -> int | None:
    """The minute of the first hour in which the wave began: the first that is no lull beside the hour's liveliest."""
    liveliest = max((minute.still for minute in minutes), default=0)
    return next((minute.start_ms for minute in minutes if minute.still and minute.still >= LULL * liveliest), None)


def wave_causes(surge: Surge) -> list[tuple[str, str, str]]:
    """The fewest groups that make up nine tenths of the wave, the largest first."""
    causes: list[tuple[str, str, str]] = []
    n = 0
    for group, share in surge.groups:
        if n >= CAUSES * surge.n:
            break
        causes.append(group)
        n += share
    return causes
