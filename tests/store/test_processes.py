"""Signs of life: whole rows of who lives, who left, who is forgotten; and a person's own settings."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queue_app.models import Preference, Process
from queue_app.store import preferences, processes
from tests.store.changed import changes
from tests.store.rows import AT

pytestmark = pytest.mark.django_db
WHOLE = {
    "name": "w1", "kind": "worker", "queue": "snacks", "started_at_ms": AT, "seen_at_ms": AT, "stopped_at_ms": None,
    "detail": "", "host": "", "concurrency": 1, "ended_n": 0, "failed_n": 0, "rate_mj": 0, "draining": False,
}  # fmt: skip


def test_a_process_that_arrives_has_its_row_and_others_keep_theirs() -> None:
    processes.beat("w0", "worker", "drinks", AT - 1)
    with changes(Process) as changed:
        processes.beat("w1", "worker", "snacks", AT)
        processes.beat(
            "r1", "redriver", "", AT + 1, "disk_full", {"started_at_ms": AT - 5, "host": "h", "draining": True}
        )
    assert changed == {
        "w1": WHOLE,
        "r1": WHOLE | {
            "name": "r1", "kind": "redriver", "queue": "", "started_at_ms": AT - 5, "seen_at_ms": AT + 1,
            "detail": "disk_full", "host": "h", "draining": True,
        },
    }  # fmt: skip


def test_a_beat_tells_what_is_otherwise_and_that_it_runs() -> None:
    processes.beat("w1", "worker", "snacks", AT, "locked", {"ended_n": 4})
    processes.beat("w2", "worker", "snacks", AT)
    processes.leave("w1", AT + 1)
    with changes(Process) as changed:
        processes.beat("w1", "redriver", "drinks", AT + 2, more={"failed_n": 3})
    assert changed == {
        "w1": {
            "kind": "redriver", "queue": "drinks", "seen_at_ms": AT + 2, "stopped_at_ms": None, "detail": "", "failed_n": 3,
        }
    }  # fmt: skip


def test_one_that_leaves_says_so_and_nobody_else() -> None:
    processes.beat("w1", "worker", "snacks", AT)
    processes.beat("w2", "worker", "snacks", AT)
    with changes(Process) as changed:
        processes.leave("w1", AT + 7)
        processes.leave("w2", AT + 8, {"ended_n": 5})
        processes.leave("none", AT + 9)
    assert changed == {
        "w1": {"seen_at_ms": AT + 7, "stopped_at_ms": AT + 7},
        "w2": {"seen_at_ms": AT + 8, "stopped_at_ms": AT + 8, "ended_n": 5},
    }


WORKER = ("w1", AT)


@pytest.mark.parametrize(
    ("row", "asked", "told"),
    [
        ({}, WORKER, True),
        ({}, ("w2", AT), False),
        ({}, ("w1", AT + 1), False),
        ({"kind": "redriver"}, WORKER, False),
        ({"stopped_at_ms": AT + 5}, WORKER, False),
        ({"draining": True}, WORKER, False),
    ],
)
def test_only_the_worker_that_runs_since_then_is_told_and_once(
    row: dict[str, Any], asked: tuple[str, int], told: bool
) -> None:
    processes.beat("w1", "worker", "snacks", AT)
    processes.beat("w0", "worker", "snacks", AT)
    Process.objects.filter(pk="w1").update(**row)
    with changes(Process) as changed:
        assert processes.drain(*asked) is told
    assert changed == ({"w1": {"draining": True}} if told else {})
    assert processes.told_to_drain("w1") is (told or "draining" in row)
    assert not processes.told_to_drain("w0")
    assert not processes.told_to_drain("none")


@pytest.mark.parametrize("how", [{}, {"lock": False}, {"lock": True}])
def test_a_process_is_found_by_its_name(how: dict[str, bool]) -> None:
    processes.beat("w0", "worker", "snacks", AT)
    processes.beat("w1", "worker", "snacks", AT)
    found = processes.find("w1", **how)
    assert found is not None
    assert (found.name, found.started_at_ms) == WORKER
    assert processes.find("none", **how) is None


@pytest.mark.parametrize(("how", "locks"), [({}, False), ({"lock": False}, False), ({"lock": True}, True)])
def test_its_row_is_held_on_request(monkeypatch: pytest.MonkeyPatch, how: dict[str, bool], locks: bool) -> None:
    """Differs because SQLite's write transaction holds everything anyway."""
    if connection.vendor == "sqlite":
        monkeypatch.setattr(connection.features, "has_select_for_update", True)
        monkeypatch.setattr(connection.ops, "for_update_sql", lambda **_: "/* FOR UPDATE */")
    with CaptureQueriesContext(connection) as asked:
        processes.find("w1", **how)
    assert ("FOR UPDATE" in asked[0]["sql"]) is locks


def test_those_not_seen_for_long_are_forgotten() -> None:
    for n in range(4):
        processes.beat(f"w{n}", "worker", "snacks", AT + n)
    assert (processes.forget(AT), processes.forget(AT + 2), processes.forget(AT + 2)) == (0, 2, 0)
    assert set(Process.objects.values_list("name", flat=True)) == {"w2", "w3"}


def test_only_the_settings_named_are_written(operator: User, team_lead: User) -> None:
    preferences.keep(team_lead.pk, theme="dark")
    with changes(Preference) as changed:
        preferences.keep(operator.pk, language="ja", single_keys=False)
        preferences.keep(operator.pk, time_zone="Asia/Tokyo")
        preferences.keep(operator.pk, language="en")
        preferences.keep(team_lead.pk, theme="light")
    assert changed == {
        operator.pk: {
            "user_id": operator.pk, "language": "en", "time_zone": "Asia/Tokyo", "theme": "auto", "single_keys": False,
        },
        team_lead.pk: {"theme": "light"},
    }  # fmt: skip
