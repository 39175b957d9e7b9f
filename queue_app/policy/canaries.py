"""The trial that comes first, and the breaker that watches afterwards: when a redrive must stop by itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Group = tuple[str, str]
"""(reason, code) within the one queue of a plan."""

Verdict = Literal["sending", "waiting", "passed", "failed", "silent"]
WINDOW = 100  # the breaker looks at so many last results; those that are not in yet count as good


@dataclass(frozen=True, slots=True)
class Trial:
    """A round's trial: orders started, of those ended well and dead again; `left`: of the trial not started yet.

    `sent_at_ms` is the instant when the last one was started, None before; `wait_ms` how long results may take.
    """

    sent: int
    left: int
    done: int
    died: int
    sent_at_ms: int | None
    wait_ms: int
    stop_permille: int


def judge(trial: Trial, now_ms: int) -> Verdict:
    """What the trial says now. It fails once so many died that the share is reached whatever the rest does.

    The whole trial is started before it is judged: a few orders more tell more about each cause.
    """
    if trial.left > 0 or trial.sent_at_ms is None:
        return "sending"
    if trial.died * 1_000 >= trial.stop_permille * trial.sent and trial.died > 0:
        return "failed"
    if trial.done + trial.died >= trial.sent:
        return "passed"
    return "silent" if now_ms - trial.sent_at_ms >= trial.wait_ms else "waiting"


def tripped(died: int, stop_permille: int) -> bool:
    """Whether so many deaths among the last WINDOW results stop the batch."""
    return died > 0 and died * 1_000 >= stop_permille * WINDOW


def allot(groups: Mapping[Group, int], size: int) -> dict[Group, int]:
    """How many of each group belong to a trial of `size`: one of each while it lasts (largest groups first), the rest by
    share. Groups without a waiting order get none. The sum is min(size, all)."""
    waiting = {group: n for group, n in groups.items() if n > 0}
    total = sum(waiting.values())
    size = min(size, total)
    order = sorted(waiting, key=lambda group: (-waiting[group], group))
    given = dict.fromkeys(order[:size], 1)
    rest = size - len(given)
    if rest > 0:
        room = total - len(given)
        exact = {group: rest * (waiting[group] - 1) for group in order}
        for group in order:
            given[group] += exact[group] // room
        missing = size - sum(given.values())
        by_remainder = sorted(order, key=lambda group: (-(exact[group] % room), -waiting[group], group))
        for group in by_remainder[:missing]:
            given[group] += 1
    return given
