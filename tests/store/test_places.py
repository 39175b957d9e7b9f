"""Places of long walks and turns of chores: each name has its own row, and only one process is told that it is due."""

import pytest

from queue_app.models import Head
from queue_app.store import places
from tests.store.changed import Asked, changes
from tests.store.rows import AT

pytestmark = pytest.mark.django_db


def test_a_place_is_kept_under_its_name() -> None:
    assert places.read("walk") == 0
    with changes(Head) as changed:
        places.remember("walk", 7)
        places.remember("other", 8)
        places.remember("walk", 5)
    assert changed == {
        "walk": {"name": "walk", "seq": 5, "link": 0, "hash": ""},
        "other": {"name": "other", "seq": 8, "link": 0, "hash": ""},
    }
    assert [places.read(name) for name in ("walk", "other", "none")] == [5, 8, 0]


@pytest.mark.parametrize(
    ("last", "due"), [(None, True), (AT - 100, True), (AT - 99, False), (AT, False), (AT + 1, True), (AT - 101, True)]
)
def test_a_turn_is_due_after_its_time_or_when_the_clock_went_back(last: int | None, due: bool) -> None:
    places.remember("other", 3)
    if last is not None:
        places.remember("chore", last)
    assert places.take_turn("chore", AT, 100) is due
    assert places.read("chore") == (AT if due else last)
    assert places.take_turn("chore", AT, 100) is False, "another process is told that it was taken"
    assert places.read("other") == 3


def test_what_is_asked_for_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked()
    asked.rowcount = 1  # type: ignore[attr-defined]
    monkeypatch.setattr(places, "connection", asked)
    assert places.take_turn("chore", AT, 100) is True
    sql = "UPDATE heads SET seq = %s WHERE name = %s AND (seq <= %s OR seq > %s)"
    assert asked.statements == [(sql, [AT, "chore", AT - 100, AT])]


@pytest.mark.parametrize(("seen", "moved", "then"), [(0, False, 4), (4, True, 9), (5, False, 4)])
def test_a_place_moves_on_only_from_where_it_was_seen(seen: int, moved: bool, then: int) -> None:
    places.remember("walk", 4)
    places.remember("other", seen)
    assert places.replace("walk", seen, 9) is moved
    assert (places.read("walk"), places.read("other")) == (then, seen)


def test_a_place_that_nobody_kept_yet_moves_on_from_nothing() -> None:
    assert [places.replace(name, seen, 9) for name, seen in (("a", 0), ("b", 1))] == [True, False]
    assert (places.read("a"), places.read("b")) == (9, 0)


def test_others_are_kept_off_up_to_an_instant() -> None:
    assert not places.kept_off("chore", AT)
    with changes(Head) as changed:
        places.keep_off("other", AT + 9)
        places.keep_off("chore", AT)
    assert changed["chore"] == {"name": "chore", "seq": 0, "link": AT, "hash": ""}
    assert [places.kept_off("chore", now) for now in (AT - 1, AT, AT + 1)] == [True, False, False]
    places.keep_off("chore", 0)
    assert (places.kept_off("chore", 0), places.kept_off("other", AT)) == (False, True)
