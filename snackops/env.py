"""Readers of environment variables that fail loudly, with the variable's name and its value.

Every setting an installation may change is read here once, when the process starts. A value that cannot be meant
stops the start with a sentence; nothing falls back silently.
"""

import os
import re
import secrets
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from zoneinfo import available_timezones

import environ
from django.core.exceptions import ImproperlyConfigured

_KEY_LENGTH = 50  # Django's own check asks for as many
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


class Env:
    """Typed access to one mapping of environment variables (default: the process's own)."""

    def __init__(self, source: Mapping[str, str] | None = None) -> None:
        self._source = os.environ if source is None else source

    def text(self, name: str, default: str = "") -> str:
        """The variable as it stands, or the default when it is unset or empty."""
        return self._source.get(name, "").strip() or default

    def flag(self, name: str, *, default: bool) -> bool:
        """1/true/yes/on or 0/false/no/off, in any case."""
        value = self.text(name)
        if not value:
            return default
        if value.lower() in _TRUE | _FALSE:
            return value.lower() in _TRUE
        raise ImproperlyConfigured(f"{name}={value!r}: write 1 or 0 (also true/false, yes/no, on/off).")

    def integer(self, name: str, default: int, *, low: int, high: int) -> int:
        """A whole number in ASCII digits, from low to high."""
        value = self.text(name)
        if not value:
            return default
        if not (re.fullmatch(r"-?[0-9]{1,18}", value) and low <= int(value) <= high):
            raise ImproperlyConfigured(f"{name}={value!r}: write a whole number from {low} to {high}.")
        return int(value)

    def names(self, name: str, default: list[str]) -> list[str]:
        """A list separated by commas; blanks around the entries are dropped."""
        value = self.text(name)
        return [part.strip() for part in value.split(",") if part.strip()] if value else default

    def one_of(self, name: str, default: str, allowed: Collection[str]) -> str:
        """One of the allowed words, written exactly so."""
        value = self.text(name, default)
        if value not in allowed:
            raise ImproperlyConfigured(f"{name}={value!r}: write one of {', '.join(sorted(allowed))}.")
        return value

    def time_zone(self, name: str, default: str) -> str:
        """A zone of the IANA database, such as Asia/Tokyo."""
        value = self.text(name, default)
        if value not in available_timezones():
            raise ImproperlyConfigured(f"{name}={value!r}: write a time zone such as UTC or Asia/Tokyo.")
        return value

    def folder(self, name: str, default: Path) -> Path:
        """An absolute folder; it is made, for its owner only, when it does not exist."""
        path = Path(self.text(name, str(default))).absolute()
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "not a usable name"
            raise ImproperlyConfigured(f"{name}={str(path)!r}: this folder cannot be made: {why}.") from None
        return path

    def http_url(self, name: str, default: str) -> str:
        """An http(s) address with a host and without user, query or fragment; no slash at its end.

        An address with a user in it is not repeated in the message: a password may stand beside.
        """
        value = self.text(name, default)
        shown = "(an address with a user)" if "@" in value else f"={value!r}"
        try:
            parts = urlsplit(value)
            good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            good = False
        if not good or re.search(r"[@?#\\\s]|[^\x21-\x7e]", value):
            raise ImproperlyConfigured(f"{name}{shown}: write an address such as http://127.0.0.1:8081.")
        return value.rstrip("/")

    def database(self, name: str, default: Path) -> dict[str, Any]:
        """Django's dict for `sqlite:////absolute/path` or `postgres://USER:PASSWORD@HOST:PORT/NAME`.

        Percent-encoding is decoded. A broken address is not repeated in the message: it may hold a password.
        """
        value = self.text(name)
        if not value:
            return _sqlite(name, str(default))
        if value.startswith("sqlite:///"):
            return _sqlite(name, unquote(value.removeprefix("sqlite:///")))
        config: dict[str, Any] = {}
        try:
            if urlsplit(value).scheme in {
                "postgres",
                "postgresql",
            }:  # of others it warns, and the warning has all of it
                config = dict(environ.Env.db_url_config(value))
        except (ValueError, KeyError, ImproperlyConfigured):
            pass
        if not config.get("NAME"):
            scheme = value.split(":", 1)[0][:20] if "://" in value else ""
            raise ImproperlyConfigured(
                f"{name} (an address of kind {scheme!r}): write sqlite:////absolute/path "
                "or postgres://user:password@host/name."
            )
        config["HOST"] = unquote(config.get("HOST") or "")  # django-environ leaves %2F of a socket directory as it is
        return config


def _sqlite(name: str, path: str) -> dict[str, Any]:
    """A relative path would mean another database in every working directory, and one in memory another per process."""
    file = Path(path)
    if not file.is_absolute() or "\0" in path:
        raise ImproperlyConfigured(f"{name}: {path!r} is no absolute path: write sqlite:////absolute/path.")
    if file.is_dir():
        raise ImproperlyConfigured(f"{name}: {path} is a directory; name a file in it.")
    if not file.parent.is_dir():
        raise ImproperlyConfigured(f"{name}: there is no directory {file.parent}.")
    return {"ENGINE": "snackops.sqlite3", "NAME": path}


def secret_key(env: Env, folder: Path) -> str:
    """SECRET_KEY from the environment, else from a private file that the first run makes.

    The file is written whole under a name of its own and then linked into place, so that two first runs at once agree
    on one key and a crash leaves no half of one.
    """
    if given := env.text("SECRET_KEY"):
        if len(given) < _KEY_LENGTH:
            raise ImproperlyConfigured(f"SECRET_KEY: at least {_KEY_LENGTH} characters (its value is not shown here).")
        return given
    path = folder / "secret_key"
    try:
        if not path.exists():
            _keep_new_key(path)
        key = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise ImproperlyConfigured(f"The secret key cannot be kept in {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        key = ""
    if len(key) < _KEY_LENGTH:
        raise ImproperlyConfigured(f"The secret key in {path} is damaged: remove the file to have a new one made.")
    return key


def _keep_new_key(path: Path) -> None:
    handle, fresh = tempfile.mkstemp(dir=path.parent, prefix="secret_key.")  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(64))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(fresh, path)
        except FileExistsError:
            pass  # another first run was faster
    finally:
        Path(fresh).unlink(missing_ok=True)
