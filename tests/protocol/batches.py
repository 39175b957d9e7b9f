"""A plan of three orders, two redrivers, an operator and a lead, as states and steps: a batch's protocol for the explorer.

Which move is legal in which state, who makes it and what may be resumed is asked of `queue_app.policy.plans` itself; the
trial is judged by `queue_app.policy.canaries`. A redriver looks at the plan, and acts later under the plan's lock, where
it reads the state again: what was seen before the lock decides nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from queue_app.policy import canaries, plans
from queue_app.policy.canaries import Trial
from queue_app.policy.plans import BY_PERSON, TRIAL_FAILED, TRIAL_SILENT
from tests.protocol.explorer import Step

ITEMS = 3
WAITING, SENT, DONE, DIED = "w", "s", "d", "x"


class Plan(NamedTuple):
    """`items`: waiting, sent (redriven, no result yet), done, died again. `rounds` approved so far, `trial` passed in this
    one. `seen`: for each redriver the state that it saw, or '' while it does nothing. `moves`: what people may still do."""

    state: str = "proposed"
    why: str = ""
    items: str = WAITING * ITEMS
    rounds: int = 0
    trial: bool = False
    base: int = 0  # sent before this round
    seen: tuple[str, str] = ("", "")
    moves: int = 3
    other_runs: bool = True  # another batch of the queue is running


@dataclass(frozen=True)
class Rules:
    """What may be planted wrong."""

    target: Callable[[str, str], str | None] = plans.target
    resumable: Callable[[str, str], bool] = plans.resumable
    judge: Callable[[Trial, int], str] = canaries.judge
    reads_again: bool = True  # under the lock a redriver asks for the state once more
    trial_first: bool = True
    waits_its_turn: bool = True


RULES = Rules()


def steps(plan: Plan, rules: Rules = RULES) -> Iterator[Step[Plan]]:
    """Everything that may happen next."""
    if plan.other_runs:
        yield Step("the other batch ends", plan._replace(other_runs=False))
    for at, item in enumerate(plan.items):
        if item == SENT:
            yield Step(f"order {at + 1} is delivered", _item(plan, at, DONE))
            yield Step(f"order {at + 1} dies again", _item(plan, at, DIED), fair=False)
    for who, seen in enumerate(plan.seen):
        if who and seen == plan.seen[0]:
            continue
        if not seen:
            if plan.state in ("approved", "running"):
                yield Step("a redriver looks", _sees(plan, who, plan.state))
        else:
            yield from _acts(_sees(plan, who, ""), seen, rules)
    if plan.moves:
        yield from _people(plan._replace(moves=plan.moves - 1), rules)
    yield from _lead(plan, rules)


def _item(plan: Plan, at: int, value: str) -> Plan:
    return plan._replace(items=plan.items[:at] + value + plan.items[at + 1 :])


def _sees(plan: Plan, who: int, state: str) -> Plan:
    seen = (state, plan.seen[1]) if who == 0 else (plan.seen[0], state)
    return plan._replace(seen=tuple(sorted(seen)))


def _to(plan: Plan, move: str, rules: Rules, **more: object) -> Plan | None:
    state = rules.target(plan.state, move)
    return None if state is None else plan._replace(state=state, **more)


def _acts(plan: Plan, seen: str, rules: Rules) -> Iterator[Step[Plan]]:
    """One transaction of a redriver that saw the plan in a state."""
    state = plan.state if rules.reads_again else seen
    if state == "approved":
        begun = _to(plan, "begin", rules)
        if begun is not None and not (rules.waits_its_turn and plan.other_runs):
            wrong = "one batch of a queue runs at a time" if plan.other_runs else ""
            yield Step("a redriver begins", begun, broken=wrong)
        else:
            yield Step("a redriver begins nothing", plan)
        return
    if state != "running":
        yield Step("a redriver finds nothing to do", plan)
        return
    sent = sum(item != WAITING for item in plan.items) - plan.base
    if not plan.trial and sent:
        yield from _judged(plan, sent, rules)
        return
    waiting = plan.items.find(WAITING)
    if waiting < 0:
        ended = _to(plan, "end", rules)
        yield Step("a redriver ends it", ended if ended is not None else plan)
        return
    redriven = _item(plan, waiting, SENT)
    yield Step(f"a redriver restarts order {waiting + 1}", redriven, broken=_restart(plan, sent))


def _restart(plan: Plan, sent: int) -> str:
    """The rule that a restart of an order breaks in this state, or ''."""
    if plan.state != "running":
        return "nothing is restarted but by a running batch"
    if not plan.rounds:
        return "nothing is restarted without an approval"
    if sent and plan.items[plan.base] != DONE:  # the first of the round is its trial
        return "after the trial nothing is restarted before its order was delivered"
    return ""


def _judged(plan: Plan, sent: int, rules: Rules) -> Iterator[Step[Plan]]:
    mine = [item for item in plan.items if item != WAITING][plan.base :]
    trial = Trial(sent, 0, mine.count(DONE), mine.count(DIED), 0, 10, 500)
    verdict = rules.judge(trial, 0)
    if verdict == "passed":
        wrong = "a trial passes when its order was delivered" if mine.count(DIED) else ""
        yield Step("the trial has passed", plan._replace(trial=True), broken=wrong)
    elif verdict == "failed":
        yield Step("the trial has failed", _to(plan, "halt", rules, why=TRIAL_FAILED) or plan)
    else:
        yield Step("the redriver waits for the trial", plan)
        if rules.judge(trial, 10) == "silent":
            yield Step("the trial stays silent", _to(plan, "fall_silent", rules, why=TRIAL_SILENT) or plan, fair=False)


def _people(plan: Plan, rules: Rules) -> Iterator[Step[Plan]]:
    """An operator's moves; each must be legal, and a resume only of what a person paused."""
    for move in ("pause", "stop", "withdraw"):
        after = _to(plan, move, rules, why=BY_PERSON)
        if after is not None:
            wrong = "what is closed stays closed" if plan.state in plans.CLOSED else ""
            yield Step(f"an operator: {move}", after, fair=False, broken=wrong)
    resumed = _to(plan, "resume", rules, why="")
    if resumed is not None and rules.resumable(plan.state, plan.why):
        wrong = "" if plan.why == BY_PERSON else "what stopped by itself goes on by a lead only"
        yield Step("an operator: resume", resumed, fair=False, broken=wrong)


def _lead(plan: Plan, rules: Rules) -> Iterator[Step[Plan]]:
    """A lead decides; a new round begins with a new trial. Two rounds are enough to see everything twice."""
    move = plans.deciding_move(plan.state)
    if move is None:
        return
    if plan.rounds < 2:
        base = sum(item != WAITING for item in plan.items)
        after = _to(plan, move, rules, why="", rounds=plan.rounds + 1, trial=not rules.trial_first, base=base)
        if after is not None:
            yield Step(f"a lead: {move}", after)
    end = _to(plan, "reject" if plan.state == "proposed" else "stop", rules)
    if end is not None:
        yield Step("a lead lets it be", end)


def broken(plan: Plan) -> str:
    """The rule that does not hold in this state, or ''."""
    if plan.state == "ended" and WAITING in plan.items:
        return "what has ended left nothing waiting"
    if plan.state not in plans.STATES:
        return "every state is one of the table"
    return ""


def ended(plan: Plan) -> bool:
    """Closed for good."""
    return plan.state in plans.CLOSED
