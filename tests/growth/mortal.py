"""A bite of housekeeping for a process whose children die at a chosen point: `tests.engine.mortal`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any


def moves() -> dict[str, Callable[..., Any]]:
    """By name."""
    from queue_app.management.commands.housekeeping import ArchiveFile
    from queue_app.services import housekeeping

    def bite(before: dict[str, int], after: int, size: int, path: str) -> Any:
        with ArchiveFile(Path(path)) as archive:
            done = housekeeping.remove_bite(before, after, size, archive=archive.append)
        return [done.removed, done.after]

    return {"bite": bite}
