"""Waiting for what another process or thread does: for a condition, with a limit, never for a time."""

import threading
import time
from collections.abc import Callable

LIMIT_S = 60.0
LOOK_S = 0.02  # between looks


def came_true(condition: Callable[[], object], *, limit_s: float = LIMIT_S, look_s: float = LOOK_S) -> bool:
    """Whether the condition came true within the limit."""
    end, pause = time.monotonic() + limit_s, threading.Event()
    while not condition():
        if time.monotonic() >= end:
            return False
        pause.wait(look_s)
    return True


def until(
    condition: Callable[[], object], what: str = "it", *, limit_s: float = LIMIT_S, look_s: float = LOOK_S
) -> None:
    """Wait until the condition is true; a failure with `what` did not come true when the limit is over."""
    assert came_true(condition, limit_s=limit_s, look_s=look_s), f"{what} never came true within {limit_s:g} s"
