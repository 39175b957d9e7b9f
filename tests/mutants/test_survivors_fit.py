"""Every listed survivor still names a function that stands, and a reason; the copy means what the source means."""

import ast
from pathlib import Path

import pytest

from tests.mutants import breeding, listed

ALL = [f"{package}.{name}" for package in breeding.PACKAGES for name in breeding.modules_of(package)]


def functions_of(module: str) -> set[str]:
    tree = ast.parse((breeding.BASE_DIR / "queue_app" / module.replace(".", "/")).with_suffix(".py").read_text())
    owners = [("", tree), *((node.name + ".", node) for node in tree.body if isinstance(node, ast.ClassDef))]
    return {
        f"{module}.{owner}{node.name}"
        for owner, body in owners
        for node in body.body
        if isinstance(node, ast.FunctionDef)
    }


def test_every_listed_survivor_is_of_a_function_that_stands() -> None:
    known = set().union(*(functions_of(module) for module in ALL))
    assert set(listed.survivors()) <= known


def test_every_listed_survivor_has_a_reason_and_an_old_line_that_stands() -> None:
    for function, changes in listed.survivors().items():
        package, module, *_ = function.split(".")
        source = " ".join(line.strip() for line in Path("queue_app", package, f"{module}.py").read_text().splitlines())
        for change, why in changes.items():
            assert why.endswith("."), function
            assert change == "*" or change.split(" => ")[0] in source, (function, change)


@pytest.mark.parametrize(
    ("source", "copy"),
    [
        ("@a\n@b(1)\ndef f(x):\n    return x\n", "def f(x):\n    return x\nf = a(b(1)(f))\n"),
        ("class C:\n    @property\n    def f(self):\n        return 1\n\n    g = 2\n",
         "class C:\n    def f(self):\n        return 1\n    f = property(f)\n\n    g = 2\n"),
        ("class C:\n    @staticmethod\n    def f():\n        return 1\n", None),
        ("@dataclass\nclass C:\n    x: int\n", None),
    ],
)  # fmt: skip
def test_a_decorator_becomes_a_call_below_its_function(source: str, copy: str | None) -> None:
    assert breeding.undecorated(source) == (copy or source)


@pytest.mark.parametrize("module", ALL)
def test_no_function_of_the_copy_is_left_out_for_a_decorator(module: str) -> None:
    text = (breeding.BASE_DIR / "queue_app" / module.replace(".", "/")).with_suffix(".py").read_text()
    assert breeding._decorated(ast.parse(breeding.undecorated(text))) == []


def test_a_change_is_looked_up_by_itself_and_by_its_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed, "survivors", lambda: {"a.b.f": {"x => y": "One."}, "a.b.g": {"*": "All."}})
    assert [listed.reason(*which) for which in (("a.b.f", "x => y"), ("a.b.f", "x => z"), ("a.b.g", "x => y"))] == [
        "One.", "", "All.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "excused"),
    [
        ('"SELECT 1" => "select 1"', True),
        ('"SELECT 1" => "SELECT 2"', False),
        ('"Order and pay." => "ORDER AND PAY."', False),
        ("read(job_id, lock=True) => read(job_id, lock=None)", True),
        ("read(job_id, lock=True) => read(job_id, )", True),
        ("read(job_id, lock=True) => read(None, lock=True)", False),
        ('raise RuntimeError("x") => raise RuntimeError(None)', True),
        ('raise ValueError("x") => raise ValueError(None)', False),
    ],
)
def test_a_rule_excuses_its_kind_and_no_other(change: str, excused: bool) -> None:
    assert bool(listed.reason("a.b.c", change)) is excused
