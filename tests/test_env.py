"""Settings from the environment: what is meant is taken, anything else stops the start with name and value."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from snackops.env import Env, secret_key
from tests.conftest import BASE_DIR

KEY = "k" * 50


def read(value: str | None) -> Env:
    return Env({} if value is None else {"NAME": value})


@pytest.mark.parametrize(
    ("value", "answer"),
    [(None, True), ("", True), (" ", True), ("1", True), ("YES", True), ("on", True), ("0", False), ("False", False)],
)
def test_a_flag_is_on_off_or_its_default(value: str | None, answer: bool) -> None:
    assert read(value).flag("NAME", default=True) is answer


@pytest.mark.parametrize("value", ["2", "ja", "tru", "１", "None", "-"])
def test_a_flag_that_cannot_be_meant_is_named_with_its_value(value: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^NAME=.*write 1 or 0") as caught:
        read(value).flag("NAME", default=False)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(("value", "answer"), [(None, 7), ("", 7), ("1", 1), (" 10 ", 10), ("-3", -3), ("007", 7)])
def test_a_whole_number_is_read(value: str | None, answer: int) -> None:
    assert read(value).integer("NAME", 7, low=-3, high=10) == answer


@pytest.mark.parametrize(
    "value", ["-4", "11", "1.0", "1e1", "--1", "-", "0x1", "1_0", "١", "½", "ten", "9" * 5000, "-" + "9" * 30]
)
def test_a_number_that_cannot_be_meant_is_named_with_its_bounds(value: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^NAME=.*from -3 to 10\.$"):
        read(value).integer("NAME", 7, low=-3, high=10)


@pytest.mark.parametrize(
    ("value", "answer"), [(None, ["x"]), ("", ["x"]), ("a", ["a"]), ("a, b,", ["a", "b"]), (",", [])]
)
def test_a_list_is_separated_by_commas(value: str | None, answer: list[str]) -> None:
    assert read(value).names("NAME", ["x"]) == answer


def test_a_word_is_one_of_those_allowed() -> None:
    assert read(None).one_of("NAME", "INFO", ["INFO", "DEBUG"]) == "INFO"
    assert read("DEBUG").one_of("NAME", "INFO", ["INFO", "DEBUG"]) == "DEBUG"
    with pytest.raises(ImproperlyConfigured, match=r"^NAME='debug': write one of DEBUG, INFO"):
        read("debug").one_of("NAME", "INFO", ["INFO", "DEBUG"])


def test_a_time_zone_exists() -> None:
    assert read("Asia/Tokyo").time_zone("NAME", "UTC") == "Asia/Tokyo"
    for value in ("Tokyo", "../etc/passwd", "UTC+9"):
        with pytest.raises(ImproperlyConfigured, match=r"^NAME=.*time zone such as"):
            read(value).time_zone("NAME", "UTC")


def test_a_folder_is_made_for_its_owner_only(tmp_path: Path) -> None:
    made = read(str(tmp_path / "new" / "data")).folder("NAME", tmp_path)
    assert made.is_dir()
    assert stat.S_IMODE(made.stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for value in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ImproperlyConfigured, match=r"^NAME=.*this folder cannot be made: "):
            read(str(value)).folder("NAME", tmp_path)


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (None, "http://127.0.0.1:8081"),
        ("http://[::1]:8081/", "http://[::1]:8081"),
        ("https://snacks.example/in/", "https://snacks.example/in"),
    ],
)
def test_an_address_is_read_without_its_last_slash(value: str | None, answer: str) -> None:
    assert read(value).http_url("NAME", "http://127.0.0.1:8081") == answer


@pytest.mark.parametrize(
    "value",
    [
        "127.0.0.1:8081",
        "ftp://host",
        "file:///etc/passwd",
        "http://",
        "http://:80",
        "http://host:0",
        "http://host:99999",
        "http://host:x",
        "http://[::1",
        "http://host?a=1",
        "http://host?",
        "http://host#x",
        "http://ho st",
        "http://ho\tst",
        "http://ho\\st",
        "http://ｈost",
    ],
)
def test_an_address_that_cannot_be_meant_is_named_with_its_value(value: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^NAME=") as caught:
        read(value).http_url("NAME", "http://127.0.0.1:8081")
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("value", ["http://me:hunter2@host", "http://:hunter2@host", "me:hunter2@host"])
def test_a_password_in_an_address_is_refused_and_not_repeated(value: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^NAME") as caught:
        read(value).http_url("NAME", "http://127.0.0.1:8081")
    assert "hunter2" not in str(caught.value)


def test_a_sqlite_database_is_an_absolute_file(tmp_path: Path) -> None:
    odd = tmp_path / "50% #1+x?"
    odd.mkdir()
    default = odd / "snackops.sqlite3"
    assert read(None).database("NAME", default) == {"ENGINE": "snackops.sqlite3", "NAME": str(default)}
    assert read(f"sqlite:///{tmp_path}/a%20b+c.db").database("NAME", default)["NAME"] == f"{tmp_path}/a b+c.db"


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("sqlite:///relative.db", "no absolute path"),
        ("sqlite:///:memory:", "no absolute path"),
        ("sqlite:///", "no absolute path"),
        ("sqlite:////", "is a directory"),
        ("sqlite:////no/such/folder/x.db", "no directory /no/such/folder"),
        ("sqlite:////tmp/a%00b", "no absolute path"),
        ("sqlite://", "kind 'sqlite'"),
        ("mysql://me:hunter2@host/name", "kind 'mysql'"),
        ("postgres://me:hunter2@host:70000/name", "kind 'postgres'"),
        ("postgres://me:hunter2@host/", "kind 'postgres'"),
        ("postgres://me:hunter2@[host/name", "kind 'postgres'"),
        ("me:hunter2@host/name", "kind ''"),
        ("/var/lib/x.db", "kind ''"),
    ],
)
def test_a_broken_database_address_is_named_but_no_password_is_repeated(value: str, sentence: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^NAME") as caught:
        read(value).database("NAME", Path("/nowhere"))
    assert sentence in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "host", "password"),
    [
        ("postgres://me:p%40ss%2F@db.example:5433/snacks", "db.example", "p@ss/"),
        ("postgresql://me@%2Fvar%2Frun%2Fpostgresql/snacks", "/var/run/postgresql", ""),
    ],
)
def test_a_postgresql_address_is_read(value: str, host: str, password: str) -> None:
    config = read(value).database("NAME", Path("/nowhere"))
    assert (config["ENGINE"], config["NAME"], config["USER"]) == ("django.db.backends.postgresql", "snacks", "me")
    assert config["HOST"] == host
    assert (config["PASSWORD"] or "") == password


def test_a_secret_key_of_the_environment_is_taken_when_it_is_long_enough(tmp_path: Path) -> None:
    assert secret_key(Env({"SECRET_KEY": KEY}), tmp_path) == KEY
    with pytest.raises(ImproperlyConfigured, match=r"^SECRET_KEY: at least 50") as caught:
        secret_key(Env({"SECRET_KEY": "hunter2"}), tmp_path)
    assert "hunter2" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_the_first_run_makes_a_private_key_and_later_runs_keep_it(tmp_path: Path) -> None:
    key = secret_key(Env({}), tmp_path)
    assert len(key) >= 64
    assert secret_key(Env({}), tmp_path) == key
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600


def test_a_file_left_by_a_crashed_first_run_does_not_stop_the_next(tmp_path: Path) -> None:
    (tmp_path / f"secret_key.{os.getpid()}").write_text("half of a k")  # in a container every start has the same pid
    assert len(secret_key(Env({}), tmp_path)) >= 64


@pytest.mark.parametrize("damage", [b"", b"short", b"\xff" * 80])
def test_a_damaged_key_is_named_and_not_replaced(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "secret_key").write_bytes(damage)
    with pytest.raises(ImproperlyConfigured, match=r"secret_key is damaged: remove the file"):
        secret_key(Env({}), tmp_path)
    assert (tmp_path / "secret_key").read_bytes() == damage


def test_a_key_that_cannot_be_kept_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"The secret key cannot be kept in .*: No such file"):
        secret_key(Env({}), tmp_path / "missing")


def test_first_runs_at_the_same_time_agree_on_one_key(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from snackops.env import Env, secret_key; sys.stdin.readline(); "
        "print(secret_key(Env({}), Path(sys.argv[1])))"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    runs = [
        subprocess.Popen(command, cwd=BASE_DIR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for run in runs:
        assert run.stdin
        run.stdin.write("go\n")
        run.stdin.flush()
    keys = {run.communicate()[0] for run in runs}
    assert len(keys) == 1
    assert {run.returncode for run in runs} == {0}
