"""The moves of a redrive for a process whose children die at a chosen point: `tests.engine.mortal`."""

from collections.abc import Callable
from typing import Any


def _user(pk: int) -> Any:
    from django.contrib.auth.models import User

    return User.objects.get(pk=pk)


def _ask(user: int, form_key: str, now_ms: int) -> Any:
    from queue_app.policy.filters import Filter
    from queue_app.policy.selections import by_filter
    from queue_app.policy.terms import Terms
    from queue_app.services import plans

    receipt = plans.ask(
        _user(user), by_filter(Filter(queue="snacks")), Terms(1_000_000, canary=0), note="INC-1", form_key=form_key,
        now_ms=now_ms,
    )  # fmt: skip
    return [receipt.plan, receipt.state]


def _approve(user: int, plan: int, digest: str, proof: list[Any], typed: str) -> Any:
    from queue_app.services import approvals

    receipt = approvals.approve(
        _user(user), plan, round=1, digest=digest, note="OK-1", proof=approvals.Proof(*proof), typed=typed
    )
    return [receipt.plan, receipt.state]


def moves() -> dict[str, Callable[..., Any]]:
    """By name."""
    from queue_app.services import freezing, sealing, ticks

    def tick(plan: int, bite: int, now_ms: int) -> Any:
        done = ticks.tick(plan, bite=bite, now_ms=now_ms)
        return [done.state, done.redriven, done.skipped]

    def freeze(plan: int, size: int) -> Any:
        progress = freezing.step(plan, size)
        return None if progress is None else [progress.planned, progress.done]

    return {
        "ask": _ask,
        "approve": _approve,
        "freeze": freeze,
        "begin": lambda plan: ticks.begin(plan),
        "tick": tick,
        "seal": lambda plan: sealing.seal(plan),
    }
