"""The page of promises: every test that it names exists, no case is missing, no line stands without proof or reason."""

import ast
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.conftest import BASE_DIR
from tests.faults.numbers import NODE, PAGE, cases_of, number

FILE = re.compile(r"`(tests/[a-z0-9_/]+\.py)`")
CASES = {"F": 70, "C": 14, "G": 20}


def lines_of(page: str) -> list[list[str]]:
    """The rows of all tables as cells, heads left out."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| ")
    ]
    return [row for place, row in enumerate(rows) if not set("".join(row)) <= set("- ") and not _head(rows, place)]


def _head(rows: list[list[str]], place: int) -> bool:
    return place + 1 < len(rows) and set("".join(rows[place + 1])) <= set("- ")


@cache
def functions_in(path: Path) -> frozenset[str]:
    """The tests of a file by name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def faults_of(page: str) -> list[str]:
    """What is wrong with the page, as sentences."""
    rows = lines_of(page)
    wrong = [f"{path}::{name} does not exist" for path, name in NODE.findall(page) if not _there(path, name)]
    wrong += [f"{path} does not exist" for path in FILE.findall(page) if not (BASE_DIR / path).exists()]
    wrong += [f"{row[0]} has neither a test nor a reason" for row in rows if not _proved(row)]
    numbers = [row[0] for row in rows if re.fullmatch(r"[FCG]\d\d", row[0])]
    wanted = [f"{letter}{number:02}" for letter, most in CASES.items() for number in range(1, most + 1)]
    wrong += [f"{number} is missing" for number in wanted if number not in numbers]
    return wrong + [f"{number} stands twice" for number in set(numbers) if numbers.count(number) > 1]


def _there(path: str, name: str) -> bool:
    return (BASE_DIR / path).exists() and name in functions_in(BASE_DIR / path)


def _proved(row: list[str]) -> bool:
    return bool(NODE.search(row[-1])) or row[-1].startswith("not promised: ")


def test_every_line_has_its_proof_and_no_case_is_missing():
    page = PAGE.read_text(encoding="utf-8")
    assert faults_of(page) == []
    assert len(NODE.findall(page)) > 200


def test_a_page_that_promises_without_proof_is_noticed():
    page = PAGE.read_text(encoding="utf-8")
    gone = page.replace("test_enqueue_is_absent", "test_enqueue_was_absent")
    assert any("test_enqueue_was_absent" in line and "does not exist" in line for line in faults_of(gone))
    without = "\n".join(line for line in page.splitlines() if not line.startswith("| F31 "))
    assert faults_of(without) == ["F31 is missing"]
    bare = page + "\n| promise | shown by |\n| --- | --- |\n| All is well | |\n"
    assert faults_of(bare) == ["All is well has neither a test nor a reason"]


@dataclass
class Collected:
    nodeid: str
    extra_keyword_matches: set[str] = field(default_factory=set)


def test_a_test_is_found_by_the_numbers_of_its_cases():
    node = "tests/engine/test_kills.py::test_redrive_is_dead_without_a_row_or_pending_with_row_and_event"
    some = [
        Collected(node),
        Collected("tests/redrive/test_kills.py::test_a_tick_is_whole_or_never_was[x]"),
        Collected("x::y"),
    ]
    number(some)
    assert [one.extra_keyword_matches for one in some] == [{"F05", "G10"}, {"F05", "F07"}, set()]
    assert set.union(*cases_of(PAGE.read_text(encoding="utf-8")).values()) >= {"F01", "C14", "G20"}
