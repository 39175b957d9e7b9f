"""A whole installation moves from SQLite to PostgreSQL: nothing differs afterwards, and nothing half is ever left."""

import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import contextmanager

import psycopg
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from queue_app import conf
from queue_app.models import Failure, Job
from queue_app.policy.chain import parse_anchor
from queue_app.services import accounts, counting, queue, verification
from queue_app.store import houses
from tests import pgserver
from tests.conftest import BASE_DIR

pytestmark = pytest.mark.timeout(300)  # several programs start, on a machine that may be busy


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

    def run(self, *command):
        """Run python with these arguments; its output."""
        done = subprocess.run(
            [sys.executable, *command], env=self._environ, cwd=BASE_DIR, capture_output=True, text=True, timeout=120,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, (done.returncode, done.stdout[-2_000:], done.stderr[-4_000:])
        return done.stdout

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
    made.words = old_house.run("manage.py", "move_house", "--to", made.url)
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


@contextmanager
def living(url, blocker):
    """This process in a house, as if it had been started there."""
    config = conf.database_at(url)
    if config["ENGINE"].endswith("sqlite3"):
        config["OPTIONS"] = {"transaction_mode": "IMMEDIATE"}
    house = houses.open_house(config)
    try:
        with blocker.unblock(), houses.living_in(house):
            yield
    finally:
        house.close()


@pytest.fixture
def there(new_house, django_db_blocker):
    """This process in the new house."""
    with living(new_house.url, django_db_blocker):
        yield


def test_the_record_is_whole_there_and_ends_at_the_same_anchor(new_house, both, there):
    anchor = both[0]["anchor"]
    assert f"ends at {anchor}, on both sides" in new_house.words
    report = verification.verify(parse_anchor(anchor))
    assert (report.whole, report.events) == (True, parse_anchor(anchor).seq + 2)  # two exports were told since


def test_counters_agree_with_their_rows_there(there):
    assert counting.check(wait=lambda _seconds: None).differences == ()


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
    with psycopg.connect(new_house.url) as session, pytest.raises(psycopg.errors.IntegrityError):
        session.execute(statement)


def test_life_goes_on_there(there):
    """New numbers follow the old ones, an old lease can be finished, and groups mean what they meant."""
    last = Job.objects.order_by("-seq")[0].seq
    assert queue.enqueue("fresh", 1) == "accepted"
    assert Job.objects.get(pk="fresh").seq > last
    assert queue.enqueue("l1", 1, queue="letters", order_key="k") == "duplicate"
    job = Job.objects.get(pk="leased")
    assert queue.finish("leased", job.token, "permanent", code="http_422")
    assert Failure.objects.filter(job_id="leased").count() == 1
    assert accounts.set_person("nora", role="operator")
    assert {group.name for group in User.objects.get(username="oda").groups.all()} == {"operator", "night shift"}
    assert User.objects.get(username="tom").has_perm("queue_app.view_payload")


# --- what is refused ------------------------------------------------------------------------------------------------
def refusal(old, blocker, to, status=1):
    """What the command says when it refuses."""
    with living(old.url, blocker), pytest.raises(CommandError) as refused:
        call_command("move_house", to=to)
    assert refused.value.returncode == status
    return str(refused.value)


def test_a_house_that_is_not_empty_is_refused(old_house, new_house, django_db_blocker):
    assert "The new database is not empty" in refusal(old_house, django_db_blocker, new_house.url)


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
def test_what_cannot_be_moved_whole_is_not_moved_at_all(copied, other, what, django_db_blocker):
    spoiling, sentence = SPOILT[what]
    with sqlite3.connect(copied.url.removeprefix("sqlite:///")) as raw:
        raw.executescript(spoiling)
    raw.close()
    assert sentence in refusal(copied, django_db_blocker, other)
    assert tables_with_rows(other) == []


@pytest.mark.parametrize(
    ("to", "status"), [("sqlite:////tmp/x.sqlite3", 1), ("nonsense", 2), ("postgres://u:pw@127.0.0.1:1/x", 2)]
)
def test_a_target_that_is_none_is_refused_without_its_password(old_house, django_db_blocker, to, status):
    assert "pw" not in refusal(old_house, django_db_blocker, to, status)


def test_the_address_may_come_by_standard_input(old_house, new_house, django_db_blocker, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(new_house.url + "\n"))
    assert "not empty" in refusal(old_house, django_db_blocker, "-")
