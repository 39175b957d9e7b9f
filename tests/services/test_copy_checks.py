"""What is said of a restored copy: each way of looking at it, and the words for what is found."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from queue_app.policy.chain import Anchor
from queue_app.services import copy_checks
from tests.store.rows import job

ANCHOR = Anchor(1, "a" * 64)
OLDER = "The backup was made by an older version: run `manage.py migrate` on the copy before you use it."


@pytest.fixture
def copy(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What each neighbour says of the copy."""
    found = SimpleNamespace(lacks=[], differing=0, broken=None, told=[])

    def check(**given: object) -> SimpleNamespace:
        found.told.append(given)
        return SimpleNamespace(differences=("one",) * found.differing)

    def verify(expect: Anchor) -> SimpleNamespace:
        found.told.append(expect)
        broken = found.broken and SimpleNamespace(sentence=found.broken)
        return SimpleNamespace(broken=broken)

    monkeypatch.setattr(copy_checks.readiness, "lacks", lambda: found.lacks)
    monkeypatch.setattr(copy_checks.counting, "check", check)
    monkeypatch.setattr(copy_checks.verification, "verify", verify)
    return found


@pytest.mark.parametrize(
    ("says", "problems", "remarks", "counted"),
    [
        ({}, [], [], True),
        ({"lacks": ["migrations"], "differing": 3}, [], [OLDER], False),
        ({"lacks": ["migrations", "triggers"], "differing": 3}, [], [OLDER], False),
        ({"lacks": ["database", "triggers"]}, ["The copy is not ready: it lacks database, triggers."], [], True),
        ({"differing": 1_234}, [
            "1,234 counters are not what the rows say: run `manage.py counters rebuild` there."], [], True),
        ({"broken": "It is broken."}, ["It is broken."], [], True),
    ],
)  # fmt: skip
@pytest.mark.django_db
def test_a_copy_is_looked_at_in_every_way(
    says: dict[str, Any], problems: list[str], remarks: list[str], counted: bool, copy: SimpleNamespace
) -> None:
    vars(copy).update(says)
    assert copy_checks.look(ANCHOR) == (problems, remarks)
    assert copy.told == ([{"wait": copy_checks.time.sleep}] if counted else []) + [ANCHOR]


@pytest.mark.django_db
def test_a_newer_version_is_known_by_its_migrations(copy: SimpleNamespace) -> None:
    known = MigrationRecorder(connection)
    for app, name in (("zoo", "0002_bees"), ("zoo", "0001_ants"), ("queue_app", "9999_far"), ("zoo", "0003_cats")):
        known.record_applied(app, name)
    copy.differing = 5
    problems, remarks = copy_checks.look(ANCHOR)
    assert remarks == []
    assert problems == [
        "The backup was made by a newer version: this one does not know queue_app.9999_far, zoo.0001_ants, zoo.0002_bees."
    ]
    assert copy.told == [ANCHOR]  # counters are compared by what this version counts


@pytest.mark.django_db
def test_orders_that_were_being_delivered_are_remarked(copy: SimpleNamespace) -> None:
    for seq, state in enumerate(("pending", "leased", "done", "leased"), start=1):
        job(f"j{seq}", seq, state=state)
    assert copy_checks.look(ANCHOR) == ([], [
        "2 orders were being delivered when the backup was made. Their leases end by themselves, and they are delivered "
        "again."
    ])  # fmt: skip
