"""The rows that every installation has: made where their tables stand, once, and never changed afterwards."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import Group
from django.db import connection

from queue_app.models import Head, Queue
from queue_app.policy.chain import GENESIS
from queue_app.store import defaults

pytestmark = pytest.mark.django_db
ALL = ["queues", "heads", "auth_group"]


def standing() -> list[set[object]]:
    """The queues, heads and groups that there are."""
    return [
        set(Queue.objects.values_list("name", "max_attempts")),
        set(Head.objects.values_list("name", "seq", "link", "hash")),
        set(Group.objects.values_list("name", flat=True)),
    ]


ROWS: list[set[object]] = [
    {("snacks", 3)},
    {("chain", 0, 0, GENESIS), ("jobs", 0, 0, "")},
    {"operator", "team_lead", "auditor"},
]


@pytest.fixture
def nothing() -> None:
    """An installation without any row."""
    for model in (Queue, Head, Group):
        model._default_manager.all().delete()
    assert standing() == [set()] * 3


@pytest.mark.usefixtures("nothing")
@pytest.mark.parametrize("make", [defaults.create_all, lambda: defaults.create_all("default")])
def test_they_are_made_once(make: Callable[[], None]) -> None:
    make()
    assert standing() == ROWS
    Queue.objects.update(max_attempts=7)
    Head.objects.update(seq=5, hash="a" * 64)
    make()
    assert standing() == [{("snacks", 7)}, {("chain", 5, 0, "a" * 64), ("jobs", 5, 0, "a" * 64)}, ROWS[2]]


@pytest.mark.usefixtures("nothing")
@pytest.mark.parametrize("tables", [ALL[:n] for n in range(4)] + [[name] for name in ALL[1:]], ids=str)
def test_a_table_that_does_not_stand_yet_waits(monkeypatch: pytest.MonkeyPatch, tables: list[str]) -> None:
    monkeypatch.setattr(type(connection.introspection), "table_names", lambda *_: ["other", *tables])
    defaults.create_all()
    assert standing() == [rows if table in tables else set() for table, rows in zip(ALL, ROWS, strict=True)]


class Elsewhere:
    """Stands in for a model: keeps in which database a row is asked for."""

    def __init__(self, asked: list[tuple[object, ...]], table: str) -> None:
        self.objects, self.asked, self.table = self, asked, table

    def using(self, alias: str) -> "Elsewhere":
        self.asked.append((self.table, alias))
        return self

    def get_or_create(self, **_: object) -> None:
        return None

    @staticmethod
    def table_names() -> list[str]:
        return ALL


def test_another_database_gets_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []
    for table in ("Queue", "Head", "Group"):
        monkeypatch.setattr(defaults, table, Elsewhere(asked, table))
    monkeypatch.setattr(defaults, "connections", {"other": SimpleNamespace(introspection=Elsewhere)})
    defaults.create_all("other")
    assert asked == [("Queue", "other"), *[("Head", "other")] * 2, *[("Group", "other")] * 3]
