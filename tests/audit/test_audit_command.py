"""`manage.py audit`: what it prints and how it ends."""

import json
import subprocess
import sys
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import DatabaseError

from queue_app.policy.chain import GENESIS
from queue_app.reads import chain as rows
from queue_app.store import triggers
from tests.audit import story
from tests.audit.test_verification import run
from tests.conftest import BASE_DIR, RealDatabase

pytestmark = pytest.mark.django_db


@pytest.fixture
def told(operator: User, team_lead: User) -> str:
    """The story is in the tables; gives the anchor."""
    story.tell(operator.pk, team_lead.pk)
    return str(rows.anchor())


def said(*arguments: str) -> str:
    out = StringIO()
    call_command("audit", *arguments, stdout=out)
    return out.getvalue()


def test_head_prints_the_anchor_and_nothing_else(told: str) -> None:
    assert said("head") == f"{told}\n"
    assert json.loads(said("head", "--json")) == {"anchor": told, "seq": 5, "hash": told[2:]}


def test_verify_says_that_all_is_whole(told: str) -> None:
    assert said("verify") == f"Whole: 5 events and 4 redriven orders.\nhead: {told}\n"
    assert "The anchor" in said("verify", "--expect", told)


def test_verify_as_json(told: str) -> None:
    expected = {"whole": True, "events": 5, "redrives": 4, "head": told, "expected": told, "broken": None}
    assert json.loads(said("verify", "--json", "--expect", told)) == expected


@pytest.mark.usefixtures("told")
def test_a_broken_record_is_named_with_its_neighbours_and_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    triggers.drop_all()
    run("UPDATE redrives SET note = 'forged' WHERE id = 3")
    with pytest.raises(SystemExit) as ended:
        call_command("audit", "verify")
    assert ended.value.code == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("BROKEN: The content of redrives id 3 (order 'o1-2', token 3, link 3) is not what was")
    assert lines[1] == "table: redrives; what differs: hash"
    assert [line.split(" (")[0] for line in lines[3:]] == [
        "before: redrives id 2",
        "row: redrives id 3",
        "after: audit seq 2",
    ]


@pytest.mark.usefixtures("told")
def test_a_broken_record_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    triggers.drop_all()
    run("DELETE FROM audit WHERE seq = 3")
    with pytest.raises(SystemExit):
        call_command("audit", "verify", "--json")
    broken = json.loads(capsys.readouterr().out)["broken"]
    assert (broken["table"], broken["what"][0]) == ("audit", "gap")
    assert [broken[place]["link"] for place in ("before", "row", "after")] == [4, 6, 7]


MALFORMED = ["", "5", "5:", "\0", f":{GENESIS}", f"x:{GENESIS}", f"-1:{GENESIS}", f"5:{GENESIS[1:]}", f"5:{GENESIS}0"]
MALFORMED += [f"{'9' * 19}:{GENESIS}", f"5 :{GENESIS}", f"5:{'g' * 64}", f"5\n:{GENESIS}", f"５:{GENESIS}"]


@pytest.mark.parametrize("text", MALFORMED)
def test_a_malformed_anchor_gets_a_sentence_and_ends_with_2(text: str) -> None:
    with pytest.raises(CommandError, match="An anchor is written SEQ:HASH") as refused:
        call_command("audit", "verify", f"--expect={text}")
    assert refused.value.returncode == 2


def test_a_full_width_anchor_is_offered_in_half_width() -> None:
    with pytest.raises(CommandError, match=f"in half-width: 5:{GENESIS}"):
        call_command("audit", "verify", "--expect", f"５：{GENESIS}")


def test_upper_case_and_blanks_around_an_anchor_do_no_harm(told: str) -> None:
    assert "is in it" in said("verify", "--expect", f" {told.upper()} ")


def test_a_database_that_cannot_be_asked_is_no_broken_record(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise DatabaseError("no such table")

    monkeypatch.setattr(rows, "ends", fails)
    with pytest.raises(CommandError, match="cannot be read") as refused:
        call_command("audit", "verify")
    assert refused.value.returncode == 2


@pytest.mark.parametrize(("arguments", "status"), [([], 2), (["verify"], 0), (["verify", "--expect", "5"], 2)])
def test_exit_statuses_of_the_program(real_database: RealDatabase, arguments: list[str], status: int) -> None:
    command = [sys.executable, "manage.py", "audit", *arguments]
    done = subprocess.run(command, env=real_database.environ, cwd=BASE_DIR, capture_output=True, check=False)
    assert done.returncode == status
