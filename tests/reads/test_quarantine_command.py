"""`manage.py quarantine` prints the pages' numbers, as a table and as JSON."""

import json
import subprocess
import sys
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from queue_app.policy.filters import Filter
from queue_app.reads import dead
from queue_app.reads.figures import figures
from queue_app.services.looks import record
from tests.conftest import BASE_DIR, Clock, RealDatabase


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("quarantine", *arguments, stdout=out)
    return out.getvalue()


def test_json_holds_the_numbers_of_the_overview(mixed: Clock, operator: User) -> None:
    record(operator, "group", "INC-7", "looking", group=("drinks", "permanent", "http_422"), comment="secret words")
    found: dict[str, Any] = json.loads(run("--json"))
    numbers = figures(mixed.now)
    assert found["as_of_ms"] == mixed.now
    assert found["states"]["dead"] == numbers.states.dead == found["matching"]["n"]
    assert found["states"]["total"] == numbers.states.total
    assert [(group["code"], group["n"]) for group in found["groups"]] == [
        (group.code, group.n) for group in numbers.groups
    ]
    assert sum(share["part"] for _, share in found["by_reason"]) == numbers.states.dead
    assert found["look"]["note"] == "INC-7"
    assert found["unlooked"] == numbers.unlooked
    assert found["headline"]["kind"] == "dead"
    assert "secret" not in json.dumps(found)


def test_a_filter_counts_and_lists_what_the_list_shows(mixed: Clock) -> None:
    found = json.loads(run("--json", "--queue", "drinks", "--code=http_503", "--list", "5"))
    wanted = Filter(queue="drinks", code="http_503")
    assert found["matching"] == {"filter": {"code": "http_503", "queue": "drinks"}, "n": 2, "exact": True}
    assert [row["id"] for row in found["rows"]] == [row.id for row in dead.chunk(wanted, mixed.now, None, 5)]
    assert json.loads(run("--json", "--code=-"))["matching"]["n"] == 3


def test_the_table_is_for_people(mixed: Clock) -> None:
    text = run("--queue", "drinks", "--list", "2")
    assert "in quarantine 24" in text
    assert "drinks permanent http_422" in text
    assert 'matching {"queue":"drinks"}: 8' in text
    assert [job_id for job_id in ("d0", "d1", "d2") if f"\n{job_id} " in text] == ["d0", "d1"]


def test_an_empty_installation_says_none(clock: Clock, db: None) -> None:
    text = run()
    assert "in quarantine 0" in text
    assert "delivered of those that ended: none" in text
    assert json.loads(run("--json"))["oldest"] is None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--queue", "tea"], "No queue 'tea' is declared"),
        (["--reason", "tired"], "permanent, exhausted or deadline"),
        (["--queue", "snacks", "--queue", "drinks"], "given 2 times"),
        (["--died-from", "yesterday"], "A time is written like"),
        (["--list", "-1"], "from 0 to 10,000"),
    ],
)
def test_what_cannot_be_meant_ends_with_a_sentence(mixed: Clock, arguments: list[str], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence) as caught:
        run(*arguments)
    assert caught.value.returncode == 2


def test_a_reader_that_leaves_early_is_no_error(real_database: RealDatabase) -> None:
    command = f"{sys.executable} manage.py quarantine --json | true"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=BASE_DIR,
        env=real_database.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")
