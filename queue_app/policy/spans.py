"""A length of time as people read it: its largest unit and the next one, rounded up, so that nothing takes "0 s"."""

from typing import Literal

Unit = Literal["d", "h", "min", "s"]
UNITS: tuple[tuple[Unit, int], ...] = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def two_units(span_ms: int) -> tuple[tuple[int, Unit], ...]:
    """One or two (number, unit), the larger first: 114,000 ms is 1 min 54 s, two hours is 2 h alone, nothing is 0 s.

    Rounded up to the smaller of the two: what is announced is never shorter than what it takes.
    """
    seconds = max(0, -(-span_ms // 1_000))
    for place, (unit, size) in enumerate(UNITS[:-1]):
        smaller, step = UNITS[place + 1]
        rounded = -(-seconds // step) * step
        if rounded >= size:
            parts = (rounded // size, unit), (rounded % size // step, smaller)
            return parts if parts[1][0] else parts[:1]
    return ((seconds, "s"),)


def span_text(span_ms: int) -> str:
    """The same in plain English, for terminals: `1 min 54 s`, `2 h`, `3 d 4 h`."""
    return " ".join(f"{n} {unit}" for n, unit in two_units(span_ms))
