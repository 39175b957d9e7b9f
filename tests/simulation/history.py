"""What every actor did and was told: the only thing that the judge believes besides the tables and the receiver."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Event:
    """One call. `phase`: invoke until it is answered, then ok, fail (certainly nothing happened), refused or unknown."""

    number: int
    at_ms: int
    actor: str
    op: str
    phase: str = "invoke"
    about: dict[str, Any] = field(default_factory=dict)
    answer: Any = None

    def __str__(self) -> str:
        who = f"{self.number:>4} {self.at_ms % 10**8:>8} {self.actor:<5}"
        return f"{who} {self.op:<8} {self.phase:<7} {self.about} {self.answer}"


class History:
    """Events in the order in which they were invoked."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def begin(self, at_ms: int, actor: str, op: str, about: dict[str, Any]) -> Event:
        """A call that has just been made."""
        event = Event(len(self.events) + 1, at_ms, actor, op, about=about)
        self.events.append(event)
        return event

    def of(self, op: str, *phases: str) -> Iterator[Event]:
        """The calls of one kind that ended so."""
        return (event for event in self.events if event.op == op and event.phase in phases)

    def told(self, last: int = 60) -> str:
        """The end of it as lines to print."""
        return "\n".join(str(event) for event in self.events[-last:])
