"""A whole installation moves from SQLite to PostgreSQL: nothing differs afterwards, and nothing half is ever left."""

import json
import os
import shutil
import subprocess
import sys

import psycopg
import pytest

from tests import pgserver
from tests.conftest import BASE_DIR


class House:
    """A database, and programs that run on it."""

    def __init__(self, url, data):
        self.url = url
        self._environ = {
            **{name: value for name, value in os.environ.items() if name != "DATABASE_URL"},
            "DATABASE_URL": url,
            "SNACKOPS_DATA": str(data),
            "SECRET_KEY": "k" * 50,
            "DJANGO_SETTINGS_MODULE": "snackops.settings",
        }

    def run(self, *command, status=0):
        """Run python with these arguments; its output."""
        done = subprocess.run(
            [sys.executable, *command], env=self._environ, cwd=BASE_DIR, capture_output=True, text=True, timeout=120,
            check=False,
        )  # fmt: skip
        assert done.returncode == status, (done.returncode, done.stdout[-2_000:], done.stderr[-4_000:])
        return done.stdout if status == 0 else done.stderr

    def manage(self, *arguments, status=0):
        return self.run("manage.py", *arguments, status=status)

    def told(self):
        return json.loads(self.run("-m", "tests.moving.story", "tell"))


@pytest.fixture(scope="module")
def server():
    with pgserver.server() as running:
        yield running


@pytest.fixture(scope="module")
def old_house(tmp_path_factory):
    folder = tmp_path_factory.mktemp("old")
    made = House(f"sqlite:///{folder / 'old.sqlite3'}", folder)
    made.run("-m", "tests.moving.story", "make")
    return made


@pytest.fixture(scope="module")
def new_house(old_house, server, tmp_path_factory):
    """The new house after the move, and what the command said."""
    made = House(server.url, tmp_path_factory.mktemp("new"))
    made.words = old_house.manage("move_house", "--to", made.url)
    return made


@pytest.fixture(scope="module")
def both(old_house, new_house):
    return old_house.told(), new_house.told()


# --- what must be the same ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("part", ["figures", "lives", "jobs", "export", "pages", "passwords", "anchor"])
def test_both_houses_tell_the_same(both, part):
    here, there = both
    assert here[part]
    assert there[part] == here[part]


def test_the_story_leaves_a_row_in_every_table(new_house):
    empty = {"auth_group_permissions", "presences", "processes"}
    lines = [line.split(": ") for line in new_house.words.splitlines() if line.startswith("  ")]
    rows = {name.strip(): int(n.removesuffix(" rows").replace(",", "")) for name, n in lines}
    assert {name for name, n in rows.items() if not n} <= empty
    assert {"jobs", "failures", "redrives", "audit", "heads", "holds", "plan_items", "tombstones"} <= set(rows)
    assert not {"django_session", "processes", "presences"} & set(rows)


def test_the_record_is_whole_there_and_ends_at_the_same_anchor(new_house, both):
    anchor = both[0]["anchor"]
    assert f"ends at {anchor}, on both sides" in new_house.words
    new_house.manage("audit", "verify", "--expect", anchor)


def test_counters_agree_with_their_rows_there(new_house):
    assert "Every counter agrees" in new_house.manage("counters", "check")


def test_the_command_says_what_to_switch(new_house):
    assert "Set DATABASE_URL to the new address" in new_house.words
    assert "start nothing on it any more" in new_house.words
    assert "postgres://" not in new_house.words


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit SET note = 'x'",
        "DELETE FROM failures",
        "TRUNCATE tombstones",
        "UPDATE jobs SET quantity = quantity + 1",
        "DELETE FROM jobs WHERE state = 'dead'",
        "DELETE FROM plan_items",
    ],
)
def test_the_guards_are_in_force_there(new_house, statement):
    code = (
        "import django, sys; django.setup()\nfrom django.db import connection\nconnection.cursor().execute(sys.argv[1])"
    )
    assert "IntegrityError" in new_house.run("-c", code, statement, status=1)


def test_life_goes_on_there(new_house):
    """New numbers follow the old ones, an old lease can be finished, and groups mean what they meant."""
    code = """
import django; django.setup()
from django.contrib.auth.models import User
from queue_app.models import Job, Failure
from queue_app.services import accounts, queue
last = Job.objects.order_by("-seq")[0].seq
assert queue.enqueue("fresh", 1) == "accepted"
assert Job.objects.get(pk="fresh").seq > last
assert queue.enqueue("l1", 1, queue="letters", order_key="k") == "duplicate"
job = Job.objects.get(pk="leased")
assert queue.finish("leased", job.token, "permanent", code="http_422")
assert Failure.objects.filter(job_id="leased").count() == 1
assert accounts.set_person("nora", role="operator")
oda = User.objects.get(username="oda")
assert {group.name for group in oda.groups.all()} == {"operator", "night shift"}
assert User.objects.get(username="tom").has_perm("queue_app.view_payload")
print("ok")
"""
    assert new_house.run("-c", code).strip() == "ok"


# --- what is refused ------------------------------------------------------------------------------------------------
def test_a_house_that_is_not_empty_is_refused(old_house, new_house):
    said = old_house.manage("move_house", "--to", new_house.url, status=1)
    assert "The new database is not empty" in said


@pytest.fixture
def copied(old_house, tmp_path):
    """A copy of the old house, to be spoilt."""
    path = old_house.url.removeprefix("sqlite:///")
    shutil.copy(path, tmp_path / "old.sqlite3")  # nobody has it open
    return House(f"sqlite:///{tmp_path / 'old.sqlite3'}", tmp_path)


@pytest.fixture(scope="module")
def other(server):
    """A second, empty database of the server."""
    with psycopg.connect(server.url, autocommit=True) as session:
        session.execute("CREATE DATABASE other")
    return server.url.removesuffix("/postgres") + "/other"


def tables_with_rows(url):
    with psycopg.connect(url) as session:
        if session.execute("SELECT to_regclass('jobs')").fetchone()[0] is None:
            return []
        names = ("jobs", "audit", "failures", "auth_user", "plan_items")
        return [name for name in names if session.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone()]


SPOILT = {
    "a worker still lives": (
        "INSERT INTO processes (name, kind, started_at_ms, seen_at_ms) VALUES ('w7', 'worker', 1, 9000000000000)",
        "still live here: w7",
    ),
    "the record is broken": (
        "DROP TRIGGER audit_guard_update; UPDATE audit SET note = 'X-1' WHERE seq = 3",
        "The record is not whole",
    ),
    "a value that PostgreSQL does not take": (
        "DROP TRIGGER jobs_guard_body; PRAGMA ignore_check_constraints = 1; "
        "UPDATE jobs SET attempts = 'many' WHERE id = 'waits'",
        "The table jobs holds a value",
    ),
    "another version": (
        "DELETE FROM django_migrations WHERE app = 'queue_app' AND name LIKE '0002%'",
        "another version",
    ),
}


@pytest.mark.parametrize("what", SPOILT)
def test_what_cannot_be_moved_whole_is_not_moved_at_all(copied, other, what):
    import sqlite3

    spoiling, sentence = SPOILT[what]
    with sqlite3.connect(copied.url.removeprefix("sqlite:///")) as raw:
        raw.executescript(spoiling)
    raw.close()
    said = copied.manage("move_house", "--to", other, status=1)
    assert sentence in said
    assert tables_with_rows(other) == []


@pytest.mark.parametrize(
    ("to", "status"), [("sqlite:////tmp/x.sqlite3", 1), ("nonsense", 2), ("postgres://u:pw@127.0.0.1:1/x", 2)]
)
def test_a_target_that_is_none_is_refused_without_its_password(old_house, to, status):
    said = old_house.manage("move_house", "--to", to, status=status)
    assert "pw" not in said
    assert "Traceback" not in said
