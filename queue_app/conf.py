"""The only reader of Django's settings inside the app: one function for each thing that an installation may set."""

import os
from pathlib import Path
from typing import Any

from django.conf import settings

from snackops.env import Env


def data_dir() -> Path:
    """The folder of run-time data (databases, secret key)."""
    return Path(settings.DATA_DIR)


def receiver_url() -> str:
    """Where orders are delivered: an http(s) address without a slash at its end."""
    return str(settings.RECEIVER_URL)


def delivery_times_ms() -> tuple[int, int, int]:
    """Limits of one delivery in ms: connect, read, and the total over both."""
    return settings.DELIVERY_CONNECT_MS, settings.DELIVERY_READ_MS, settings.DELIVERY_TOTAL_MS


def solo_approval() -> bool:
    """Whether one person may approve the own plan (SNACKOPS_SOLO_APPROVAL; every page and row says so)."""
    return bool(settings.SOLO_APPROVAL)


def behind_proxy() -> bool:
    """Whether a proxy of the installation stands in front, whose headers may be believed (SNACKOPS_TRUST_PROXY)."""
    return bool(settings.BEHIND_PROXY)


def sign_in_tries_per_address() -> int:
    """Failed sign-ins from one address, over all names, before it waits (SNACKOPS_SIGN_IN_TRIES_PER_ADDRESS)."""
    return int(settings.SIGN_IN_TRIES_PER_ADDRESS)


def session_limits_s() -> tuple[int, int]:
    """Seconds that a session lives without a person at it, and in all."""
    return settings.SESSION_IDLE_S, settings.SESSION_COOKIE_AGE


def site_time_zone() -> str:
    """The zone of people who chose none."""
    return str(settings.TIME_ZONE)


def static_root() -> Path:
    """Where collected static files lie; an empty folder is enough."""
    return Path(settings.STATIC_ROOT)


def postgresql_programs() -> str:
    """The folder of pg_dump and pg_restore that an installation names (SNACKOPS_PG_BIN); empty: they are looked for."""
    return str(settings.PG_BIN)


def environment() -> dict[str, str]:
    """This process's whole environment, to be handed on to a child program: never to be read for a setting."""
    return dict(os.environ)


def base_dir() -> Path:
    """The folder of manage.py."""
    return Path(settings.BASE_DIR)


def database_at(address: str) -> dict[str, Any]:
    """Django's dict of the database at an address as DATABASE_URL has it. ImproperlyConfigured, without the address."""
    return Env({"--to": address}).database("--to", data_dir())


def sqlite_file() -> Path | None:
    """The file of the default database; None when that is none of SQLite."""
    config = settings.DATABASES["default"]
    return Path(config["NAME"]) if config["ENGINE"].endswith("sqlite3") else None
