"""The numbers of DESIGN section 7 as plain values: `reads` fills them in, pages and commands show them.

Instants and spans in ms. Every set of figures carries its as-of time. A ratio of nothing is None.
"""

from dataclasses import dataclass

from queue_app.policy.filters import Filter

RECENT_MS = 300_000  # "in the last five minutes": whole minutes, so at least five and less than six
SILENT_MS = 15_000  # three beats of five seconds


@dataclass(frozen=True, slots=True)
class Ratio:
    """`part` of `whole`."""

    part: int
    whole: int

    @property
    def value(self) -> float | None:
        """0.0 to 1.0; None for a part of nothing."""
        return self.part / self.whole if self.whole else None


@dataclass(frozen=True, slots=True)
class Look:
    """An investigation. `as_of_ms`: what died before it was covered; `count`: how many that was."""

    id: int
    at_ms: int
    as_of_ms: int
    by_id: int
    by_name: str
    scope: str
    job_id: str
    note: str
    finding: str
    count: int


@dataclass(frozen=True, slots=True)
class Results:
    """What redrives led to; the first end after each counts. `waiting`: no end yet."""

    waiting: int = 0
    done: int = 0
    dead_same: int = 0
    dead_other: int = 0

    @property
    def redriven(self) -> int:
        """All redrives."""
        return self.waiting + self.done + self.dead_same + self.dead_other

    @property
    def success(self) -> Ratio:
        """Delivered, of those that came to an end."""
        return Ratio(self.done, self.redriven - self.waiting)


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """One cause: queue + reason + code. `trend`: deaths in each of the last 24 hours, the present one last.

    `recent`: deaths in the last five minutes. `since_look`: dead now that died since the last investigation of the group
    (all of them when there was none), the first at `since_look_ms` (None when nothing died since). `part`: the last look
    at some of its orders only (at one, or by a filter that left others out), unless a look at the whole group is later.
    """

    queue: str
    reason: str
    code: str
    n: int
    first_at_ms: int
    last_at_ms: int
    trend: tuple[int, ...]
    recent: int
    look: Look | None
    since_look: int
    since_look_ms: int | None
    results: Results
    effect_possible: bool
    part: Look | None = None

    @property
    def filter(self) -> Filter:
        """Exactly the orders that `n` counts."""
        return Filter(queue=self.queue, reason=self.reason, code=self.code)

    @property
    def since_filter(self) -> Filter:
        """Exactly the orders that `since_look` counts."""
        since = self.look.as_of_ms if self.look else None
        return Filter(queue=self.queue, reason=self.reason, code=self.code, died_from_ms=since)


@dataclass(frozen=True, slots=True)
class StateFigures:
    """Orders by state; pending is new, retrying and redriven."""

    new: int = 0
    retrying: int = 0
    redriven: int = 0
    leased: int = 0
    done: int = 0
    dead: int = 0

    @property
    def pending(self) -> int:
        """Waiting for delivery."""
        return self.new + self.retrying + self.redriven

    @property
    def total(self) -> int:
        """All orders."""
        return self.pending + self.leased + self.done + self.dead

    @property
    def completion(self) -> Ratio:
        """Delivered, of all: more dead is not more done."""
        return Ratio(self.done, self.total)


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """One declared queue."""

    name: str
    ordering: str
    paused: bool
    accepting: bool
    states: StateFigures
    workers: int  # alive


@dataclass(frozen=True, slots=True)
class Window:
    """A window of the past: `still` are dead now and died in it, `died` are all deaths in it. None: since ever."""

    name: str
    since_ms: int | None
    died: int
    still: int

    @property
    def filter(self) -> Filter:
        """Exactly the orders that `still` counts."""
        return Filter(died_from_ms=self.since_ms)


@dataclass(frozen=True, slots=True)
class Why:
    """Why the orders of a window stopped: those that died in it and are dead now, by reason and by code, each with its
    share of `window.still`."""

    window: Window
    by_reason: tuple[tuple[str, Ratio], ...]
    by_code: tuple[tuple[str, Ratio], ...]


@dataclass(frozen=True, slots=True)
class Bucket:
    """One minute or hour from `start_ms`: deaths in it, redrives in it, and deaths in it that are still dead."""

    start_ms: int
    died: int
    left: int
    still: int


@dataclass(frozen=True, slots=True)
class Surge:
    """The wave that most of the quarantine came with: `n` still dead since a minute, by group, the largest first."""

    since_ms: int
    n: int
    groups: tuple[tuple[tuple[str, str, str], int], ...]


@dataclass(frozen=True, slots=True)
class Oldest:
    """The order that is in quarantine for longest."""

    id: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """Answers that nobody knows. `leased`: all of lease over and unproved, each once; exact up to a cap of 10,000.

    `lease_over`: being delivered, but the lease is over. `unproved`: being delivered, and the answer proved nothing.
    `dead`: in quarantine with a code that says an effect is possible.
    """

    leased: int
    lease_over: int
    unproved: int
    dead: int
    exact: bool


@dataclass(frozen=True, slots=True)
class ProcessFigures:
    """A worker or redriver. `state`: alive, silent (not seen for three beats) or stopped; `detail`: why it waits."""

    name: str
    kind: str
    queue: str
    state: str
    started_at_ms: int
    seen_at_ms: int
    detail: str


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything that the overview shows, as of one instant."""

    as_of_ms: int
    states: StateFigures
    queues: tuple[QueueFigures, ...]
    groups: tuple[GroupFigures, ...]  # the largest first
    by_reason: tuple[tuple[str, Ratio], ...]
    by_code: tuple[tuple[str, Ratio], ...]
    oldest: Oldest | None
    look: Look | None  # the last one of any scope
    since_look: int  # dead now that died since it (or all)
    results: Results
    late_finishes: int
    windows: tuple[Window, ...]
    hours: tuple[Bucket, ...]  # seven days, the present hour last
    recent: int  # deaths in the last five minutes
    recent_since_ms: int
    surge: Surge | None
    last_delivery_ms: int | None
    unknown: Unknown
    processes: tuple[ProcessFigures, ...]
    carried: int = 0  # redrives that a redriver has something to do for

    @property
    def unlooked(self) -> int:
        """Dead now that died since anybody looked at their group."""
        return sum(group.since_look for group in self.groups)

    @property
    def groups_by_size(self) -> list[tuple[str, str, str]]:
        """The causes, the largest first."""
        return [(group.queue, group.reason, group.code) for group in self.groups]

    @property
    def day(self) -> tuple[Bucket, ...]:
        """The last 24 hours of `hours`."""
        return self.hours[-24:]
