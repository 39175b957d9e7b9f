"""Which test shows which case, read from the page of promises: `pytest -k F13` runs the tests of case F13."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

PAGE = Path(__file__).resolve().parents[2] / "queue_app" / "docs" / "promises.md"
NODE = re.compile(r"`(tests/[a-z0-9_/]+\.py)::(test_\w+)`")
_ROW = re.compile(r"^\| ([FCG]\d\d) \|.*$", re.MULTILINE)


class Item(Protocol):
    """What pytest has collected."""

    nodeid: str
    extra_keyword_matches: set[str]


def cases_of(page: str) -> Mapping[str, set[str]]:
    """`file::test` -> the numbers of the cases that name it."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in _ROW.finditer(page):
        for path, name in NODE.findall(row[0]):
            found[f"{path}::{name}"].add(row[1])
    return found


def number(items: Iterable[Item]) -> None:
    """Let each test answer to the numbers of its cases."""
    cases = cases_of(PAGE.read_text(encoding="utf-8"))
    for item in items:
        item.extra_keyword_matches.update(cases.get(item.nodeid.partition("[")[0], ()))
