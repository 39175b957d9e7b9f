"""Every planted mistake can still be planted: the product has moved on and the table with it."""

import ast
import re
from pathlib import Path

import pytest

from tests.planted import __main__ as command
from tests.planted.__main__ import BASE_DIR, main, place
from tests.planted.mistake import Mistake
from tests.planted.mistakes import MISTAKES


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: re.sub(r"\W+", " ", mistake.name))
def test_its_old_text_stands_once_and_the_new_one_is_python(mistake):
    text = place(mistake, BASE_DIR)
    assert text != (BASE_DIR / mistake.file).read_text()
    ast.parse(text)


def test_names_are_told_once():
    names = [mistake.name for mistake in MISTAKES]
    assert len(names) == len(set(names)) > 30


@pytest.mark.parametrize("test", sorted({test for mistake in MISTAKES for test in mistake.tests}))
def test_every_named_test_is_there(test):
    path, name = test.split("::")
    names = {
        node.name for node in ast.parse(Path(BASE_DIR / path).read_text()).body if isinstance(node, ast.FunctionDef)
    }
    assert name in names


def test_a_text_that_stands_twice_or_nowhere_is_refused():
    for old in ("state", "no such text"):
        with pytest.raises(ValueError, match="stands"):
            place(Mistake("x", "queue_app/store/jobs.py", old, "", ()), BASE_DIR)


ALL = [mistake.name for mistake in MISTAKES]


@pytest.mark.parametrize(
    ("arguments", "status", "names"),
    [
        (["--list"], 0, ALL),
        (["--list", "turns:", "growth:"], 0, [name for name in ALL if name.startswith(("turns:", "growth:"))]),
        (["--help"], 0, None),
        (["no such mistake"], 2, None),
        (["--nonsense"], 2, None),
    ],
)
def test_help_list_and_wrong_usage_plant_nothing(arguments, status, names, monkeypatch, capsys):
    monkeypatch.setattr(command, "plant", lambda _chosen: pytest.fail("something was planted"))
    try:
        ended = main(arguments)
    except SystemExit as left:
        ended = left.code
    said = capsys.readouterr()
    assert ended == status
    assert names is None or said.out.splitlines() == names
    assert (status == 2) == bool(said.err)


def test_names_choose_what_is_planted(monkeypatch):
    chosen = []
    monkeypatch.setattr(command, "plant", chosen.extend)
    main(["turns: nobody", "expiry"])
    assert [mistake.name for mistake in chosen] == ["expiry boundary off by one", "turns: nobody steps back"]
    main([])
    assert chosen[2:] == list(MISTAKES)
