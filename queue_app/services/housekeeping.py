"""Growth is kept small: done orders that their queue keeps no longer, and what gathers by itself.

Only done orders go, archived first if asked, and each leaves a tombstone in the same transaction, so that its id still
answers `duplicate` or `Conflict`. Never one that is dead, pending or leased, nor one that an open plan, an unfinished batch
or an investigation refers to; failures, redrives and the record are never removed (DESIGN section 3).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from queue_app import clock
from queue_app.models import Queue
from queue_app.policy.errors import InvalidOrder
from queue_app.policy.retention import BITE, DoneJob, archive_line, done_before, next_bite
from queue_app.policy.windows import DAY_MS, MINUTE_MS, MINUTES_KEPT_MS
from queue_app.store import chain, chores, counters, database, done_jobs, places, processes, tombstones
from queue_app.store.chain import Event

TIDY_EVERY_MS = MINUTE_MS
TIDY_ROWS = 2_000  # of a table at once: more would keep others waiting; the next turn goes on
FORGET_MS = DAY_MS  # processes not seen, presences and failed sign-ins older than this

Archive = Callable[[Sequence[str]], None]
"""Takes lines and returns once they are durable."""


@dataclass(frozen=True, slots=True)
class Bite:
    """One step of a round. `after`: where the next begins, None at the end; `size` suits it; `held_ms` of the write lock."""

    removed: dict[str, int]
    after: int | None
    size: int
    held_ms: int
    kept_off: bool = False


@dataclass(slots=True)
class Round:
    """What a whole round did: removed orders by queue, bites, and the longest time that it held the write lock."""

    removed: Counter[str] = field(default_factory=Counter)
    bites: int = 0
    held_ms: int = 0
    kept_off: bool = False


def rules(queue: str | None = None) -> dict[str, int | None]:
    """Queue -> how long it keeps done orders (ms), None for ever. InvalidOrder for a queue that is not declared."""
    rows = Queue.objects.order_by("name") if queue is None else Queue.objects.filter(pk=queue)
    found = dict(rows.values_list("name", "done_kept_ms"))
    if queue is not None and not found:
        raise InvalidOrder(f"No queue {ascii(queue)[:40]} is declared.")
    return found


def removable(before: Mapping[str, int]) -> dict[str, int]:
    """How many done orders of each queue a round would remove now. It looks through all of them and changes nothing."""
    found: Counter[str] = Counter()
    after, last = 0, not before
    while not last:
        seen = done_jobs.stretch(before, after, BITE[1])
        found.update(job.queue for job in seen.jobs)
        after, last = seen.after, seen.last
    return dict(found)


def remove_round(
    queue: str | None = None,
    *,
    archive: Archive | None = None,
    wait: Callable[[float], object],
    stopped: Callable[[], bool] = lambda: False,
    now_ms: int | None = None,
) -> Round:
    """Remove what may go, bite after bite, until the end or until `stopped()`. `wait(seconds)` leaves the lock to others.

    A round over all queues goes on where the last one stopped or was killed; one over a single queue begins anew.
    """
    now = database.instant(now_ms)
    before = done_before(rules(queue), now)
    done = Round()
    after: int | None = places.read(places.RETENTION) if queue is None and before else 0 if before else None
    size, told = BITE[0], set[str]()
    while after is not None and not stopped():
        bite = remove_bite(before, after, size, archive=archive, whole=queue is None, told=told)
        done.removed.update(bite.removed)
        done.bites += 1
        done.held_ms = max(done.held_ms, bite.held_ms)
        if bite.kept_off:
            done.kept_off = True
            break
        after, size = bite.after, bite.size
        wait(bite.held_ms / 1_000)
    return done


@database.retried
def remove_bite(
    before: Mapping[str, int],
    after: int,
    size: int,
    *,
    archive: Archive | None = None,
    whole: bool = True,
    told: set[str] | None = None,
) -> Bite:
    """Look at the next orders and remove at most `size`. After a crash the same call does the same again.

    The lines of the archive are durable before the removal begins, so one may stand there twice, and none is missing.
    """
    seen = done_jobs.stretch(before, after, size)
    if archive is not None and seen.jobs:
        archive([archive_line(job) for job in seen.jobs])
    if not seen.jobs and not (whole and seen.last):
        return Bite({}, None if seen.last else seen.after, size, 0)
    with database.write():
        began_ms = clock.monotonic_ms()  # the wait for the lock tells nothing about the bite
        now = database.now_ms()
        if places.kept_off(places.RECOUNT, now):
            return Bite({}, after, size, 0, kept_off=True)
        removed = _remove(seen.jobs, before, now, archived=archive is not None, told=told)
        if whole:
            places.remember(places.RETENTION, 0 if seen.last else seen.after)
    if told is not None:
        told.update(removed)  # not before the commit: a transaction that begins anew tells anew
    held_ms = clock.monotonic_ms() - began_ms
    return Bite(removed, None if seen.last else seen.after, next_bite(size, held_ms), held_ms)


def _remove(
    jobs: Sequence[DoneJob], before: Mapping[str, int], now: int, *, archived: bool, told: set[str] | None
) -> dict[str, int]:
    gone = done_jobs.remove(jobs, before)
    removed = [job for job in jobs if job.id in gone]
    if not removed:
        return {}
    tombstones.bury(removed, now)
    by_queue = Counter(job.queue for job in removed)
    new = sorted(set(by_queue) - (told or set()))  # one event a round: how many went, the tombstones tell
    if new:
        chain.append([_event(queue, before[queue], now, archived=archived) for queue in new])
    return dict(by_queue)


def _event(queue: str, before_ms: int, now: int, *, archived: bool) -> Event:
    return Event(
        at_ms=now,
        action="remove_done",
        target=f"queue:{queue}",
        source="cli",
        detail={"done_before_ms": before_ms, "archived": archived},
    )


# --- what gathers by itself -----------------------------------------------------------------------------------------


@database.retried
def _my_turn(now_ms: int | None) -> int | None:
    """The instant, if it is this process's turn to tidy."""
    with database.write():
        now = database.instant(now_ms)
        return now if places.take_turn(places.TIDYING, now, TIDY_EVERY_MS) else None


def tidy_if_due(now_ms: int | None = None) -> dict[str, int] | None:
    """Tidy once a minute over all processes together; what was dropped, or None when it is not this one's turn."""
    now = _my_turn(now_ms)
    return None if now is None else tidy(now)


def tidy(now_ms: int | None = None) -> dict[str, int]:
    """One bite of each chore, each in a short transaction of its own: rows dropped (or folded) by name."""
    now = database.instant(now_ms)
    chores_of_now: dict[str, Callable[[], int]] = {
        "counters folded": lambda: counters.fold_slots(TIDY_ROWS),
        "minutes": lambda: counters.forget_minutes(now - MINUTES_KEPT_MS, TIDY_ROWS),
        "processes": lambda: processes.forget(now - FORGET_MS),
        "presences": lambda: chores.forget_presences(now - FORGET_MS, TIDY_ROWS),
        "sessions": lambda: chores.forget_sessions(now, TIDY_ROWS),
        "failed sign-ins": lambda: chores.forget_sign_ins(now - FORGET_MS, TIDY_ROWS),
    }
    return {name: _done(chore) for name, chore in chores_of_now.items()}


@database.retried
def _done(chore: Callable[[], int]) -> int:
    with database.write():
        return chore()
