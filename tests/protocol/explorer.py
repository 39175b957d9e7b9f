"""An exhaustive explorer: every state that a protocol can reach, breadth first, so that the first fault is the shortest."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Step[S: Hashable]:
    """One thing that may happen next. `fair`: no fault and nobody's wish, so that waiting alone leads there.

    `broken`: the rule that this step itself breaks, or ''.
    """

    label: str
    after: S
    fair: bool = True
    broken: str = ""


@dataclass(slots=True)
class Explored[S: Hashable]:
    """What was seen: how many states and steps; the rule that broke first with the shortest way there."""

    states: int = 0
    steps: int = 0
    rule: str = ""
    trace: list[str] = field(default_factory=list)
    reached: list[S] = field(default_factory=list)

    def told(self) -> str:
        """The finding as lines to print."""
        if not self.rule:
            return f"{self.states:,} states, {self.steps:,} steps: every rule holds"
        lines = [f"{number:>3}. {label}" for number, label in enumerate(self.trace, 1)]
        return "\n".join([f"broken after {len(self.trace)} steps ({self.states:,} states seen): {self.rule}", *lines])


def explore[S: Hashable](
    start: S,
    steps: Callable[[S], Iterable[Step[S]]],
    broken: Callable[[S], str],
    ended: Callable[[S], bool],
    *,
    most: int = 5_000_000,
) -> Explored[S]:
    """Look at every reachable state. `broken` names the rule that a state breaks, or ''.

    Liveness: from every state an ended one must be reachable by fair steps alone. More than `most` states: an AssertionError.
    """
    number: dict[S, int] = {start: 0}
    order: list[S] = [start]
    came: list[tuple[int, str]] = [(-1, "")]
    fair_into: list[list[int]] = [[]]
    found: Explored[S] = Explored(reached=order)
    todo = deque([0])

    def stopped(rule: str, at: int, *last: str) -> Explored[S]:
        trace = list(reversed(last))
        while at > 0:
            at, label = came[at]
            trace.append(label)
        found.rule, found.trace, found.states = rule, trace[::-1], len(order)
        return found

    if rule := broken(start):
        return stopped(rule, 0)
    while todo:
        here = todo.popleft()
        for step in steps(order[here]):
            found.steps += 1
            if step.broken:
                return stopped(step.broken, here, step.label)
            there = number.get(step.after)
            if there is None:
                there = number[step.after] = len(order)
                order.append(step.after)
                came.append((here, step.label))
                fair_into.append([])
                todo.append(there)
                assert there < most, f"more than {most:,} states"
                if rule := broken(step.after):
                    return stopped(rule, there)
            if step.fair:
                fair_into[there].append(here)
    found.states = len(order)
    hopeless = _without_end(order, fair_into, ended)
    return stopped("no end can be reached from here though every fault is over", hopeless) if hopeless >= 0 else found


def _without_end[S: Hashable](order: list[S], fair_into: list[list[int]], ended: Callable[[S], bool]) -> int:
    """The first state from which no ended one is reachable by fair steps, or -1."""
    hopeful = [ended(state) for state in order]
    todo = [at for at, yes in enumerate(hopeful) if yes]
    while todo:
        for at in fair_into[todo.pop()]:
            if not hopeful[at]:
                hopeful[at] = True
                todo.append(at)
    return next((at for at, yes in enumerate(hopeful) if not yes), -1)
