"""Another database in the place of the usual one, for as long as somebody lives in it."""

from pathlib import Path

import pytest
from django.db import connection, connections
from django.db.backends.sqlite3.base import DatabaseWrapper

from queue_app.store import database, houses


def test_a_house_is_of_its_own_and_nothing_is_connected_yet(tmp_path: Path) -> None:
    config = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "a.sqlite3"), "OPTIONS": {"timeout": 7}}
    before = dict(config)
    house = houses.open_house(config)
    assert config == before, "the caller's dict stays as it was"
    assert (type(house), house.alias, house.connection) == (DatabaseWrapper, "default", None)
    assert {name: house.settings_dict[name] for name in config} == config
    assert house.settings_dict["ATOMIC_REQUESTS"] is False, "what is not named has Django's default"
    assert house is not connections["default"]
    assert not (tmp_path / "a.sqlite3").exists()


@pytest.mark.parametrize("fails", [False, True])
def test_everything_asks_the_house_until_one_leaves_it_also_in_trouble(tmp_path: Path, fails: bool) -> None:
    usual, kind = connections["default"], database.is_postgresql()
    house = houses.open_house({"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "a.sqlite3")})
    house.vendor = "postgresql" if not kind else "sqlite"  # the house is of the other kind
    try:
        with houses.living_in(house):
            assert connections["default"] is house
            assert connection.vendor == house.vendor
            assert database.is_postgresql() is not kind, "what was asked before is asked anew"
            if fails:
                raise KeyError("trouble")
    except KeyError:
        assert fails
    assert connections["default"] is usual
    assert database.is_postgresql() is kind
