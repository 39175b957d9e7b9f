"""The settings file: safe when nothing is set, and every value of the environment arrives where it belongs."""

import os
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from tests.conftest import BASE_DIR

FILE = BASE_DIR / "snackops" / "settings.py"
OURS = ("SNACKOPS_", "DATABASE_URL", "SECRET_KEY", "DEBUG", "ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS")


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., dict[str, Any]]]:
    """Reads the settings file with these variables and no others of the product; its names are the answer."""

    def read(**variables: str) -> dict[str, Any]:
        for name in os.environ:
            if name.startswith(OURS):
                monkeypatch.delenv(name)
        monkeypatch.setenv("SNACKOPS_DATA", str(tmp_path / "data"))
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return runpy.run_path(str(FILE))

    logging = structlog.get_config()
    yield read
    structlog.configure(**logging)  # the file sets it anew, and loggers in use would keep what later tests do not see


def test_without_any_variable_everything_is_on_the_safe_side(load, tmp_path: Path) -> None:
    found = load()
    assert found["DEBUG"] is False
    assert found["SOLO_APPROVAL"] is False
    assert "*" not in found["ALLOWED_HOSTS"]
    assert len(found["SECRET_KEY"]) >= 64
    assert found["DATABASES"]["default"]["NAME"] == str(tmp_path / "data" / "snackops.sqlite3")
    assert "SECURE_PROXY_SSL_HEADER" not in found


def test_the_journal_survives_a_power_cut_and_triggers_see_replaced_rows(load) -> None:
    options = load()["DATABASES"]["default"]["OPTIONS"]
    assert options["transaction_mode"] == "IMMEDIATE"
    pragmas = set(filter(None, options["init_command"].split(";")))
    assert pragmas == {"PRAGMA journal_mode=PERSIST", "PRAGMA synchronous=FULL", "PRAGMA recursive_triggers=ON"}


def test_wal_is_a_setting_and_still_syncs_every_commit(load) -> None:
    command = load(SNACKOPS_SQLITE_WAL="1")["DATABASES"]["default"]["OPTIONS"]["init_command"]
    assert "journal_mode=WAL" in command
    assert "synchronous=FULL" in command


def test_postgresql_gets_none_of_sqlites_options(load) -> None:
    database = load(DATABASE_URL="postgres://me@db.example/snacks")["DATABASES"]["default"]
    assert database["ENGINE"] == "django.db.backends.postgresql"
    assert "init_command" not in database.get("OPTIONS", {})


def test_every_wait_for_postgresql_is_bounded_and_connections_are_pooled(load) -> None:
    database = load(DATABASE_URL="postgres://me@db.example/snacks", SNACKOPS_PG_STATEMENT_S="9", SNACKOPS_PG_POOL="3")
    options = database["DATABASES"]["default"]["OPTIONS"]
    assert {"connect_timeout", "tcp_user_timeout", "keepalives_idle"} <= set(options)
    for limit in ("statement_timeout=9000", "lock_timeout=9000", "idle_in_transaction_session_timeout=20000"):
        assert f"-c {limit}" in options["options"]
    assert 9 < options["pool"]["connection_class"].answer_s < 18
    assert (options["pool"]["max_size"], database["DATABASES"]["default"]["CONN_MAX_AGE"]) == (3, 0)


def test_what_the_address_itself_says_stands_above_our_options(load) -> None:
    url = "postgres://me@db.example/snacks?sslmode=verify-full&connect_timeout=2"
    options = load(DATABASE_URL=url)["DATABASES"]["default"]["OPTIONS"]
    assert (options["sslmode"], int(options["connect_timeout"])) == ("verify-full", 2)


def test_behind_https_the_cookies_are_bound_to_host_and_transport(load) -> None:
    found = load(SNACKOPS_HTTPS="1")
    assert (found["SESSION_COOKIE_NAME"], found["CSRF_COOKIE_NAME"]) == ("__Host-sessionid", "__Host-csrftoken")
    assert found["SESSION_COOKIE_SECURE"] is found["CSRF_COOKIE_SECURE"] is found["SECURE_SSL_REDIRECT"] is True
    assert found["SECURE_HSTS_SECONDS"] >= 31_536_000


def test_a_header_about_the_transport_is_believed_only_when_asked_to(load) -> None:
    assert load(SNACKOPS_TRUST_PROXY="1")["SECURE_PROXY_SSL_HEADER"] == ("HTTP_X_FORWARDED_PROTO", "https")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DEBUG", "maybe"),
        ("SNACKOPS_HTTPS", "2"),
        ("SNACKOPS_SOLO_APPROVAL", "sure"),
        ("DATABASE_URL", "mysql://host/name"),
        ("SECRET_KEY", "short"),
        ("SNACKOPS_RECEIVER_URL", "localhost:8081"),
        ("SNACKOPS_TOTAL_MS", "10s"),
        ("SNACKOPS_CONNECT_MS", "0"),
        ("SNACKOPS_READ_MS", "-1"),
        ("SNACKOPS_SQLITE_TIMEOUT_S", "0"),
        ("SNACKOPS_PG_POOL", "0"),
        ("SNACKOPS_PG_STATEMENT_S", "soon"),
        ("SNACKOPS_SIGN_IN_TRIES", "0"),
        ("SNACKOPS_TIME_ZONE", "Mars/Olympus"),
        ("SNACKOPS_LOG_LEVEL", "loud"),
        ("SNACKOPS_DATA", str(FILE)),
    ],
)
def test_a_value_that_cannot_be_meant_stops_the_start_and_is_named(load, name: str, value: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^{name}"):
        load(**{name: value})


def test_no_page_may_load_anything_from_elsewhere_or_run_inline_code(load) -> None:
    policy = load()["SECURE_CSP"]
    sources = {str(source) for values in policy.values() for source in values}
    assert sources <= {"'none'", "'self'", "data:"}
    assert policy["default-src"] == policy["object-src"] == policy["base-uri"] == policy["frame-ancestors"]


def test_passwords_are_kept_with_argon2(load) -> None:
    assert load()["PASSWORD_HASHERS"][0].endswith("Argon2PasswordHasher")


@pytest.mark.django_db
def test_an_unknown_host_is_refused(client: Client) -> None:
    assert client.get("/", headers={"host": "evil.example"}).status_code == 400
