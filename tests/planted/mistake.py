"""What a planted mistake is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mistake:
    """`old` stands exactly once in `file` and becomes `new`; each of `tests` (node ids) must fail then."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
