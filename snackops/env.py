"""Readers of environment variables that fail loudly, with the variable's name and its value.

Every setting an installation may change is read here once, when the process starts. A value that cannot be meant
stops the start with a sentence; nothing falls back silently.
"""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

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
        value = self.text(name).lower()
        if not value:
            return default
        if value in _TRUE | _FALSE:
            return value in _TRUE
        raise ImproperlyConfigured(f"{name}={value!r}: write 1 or 0 (also true/false, yes/no, on/off).")

    def integer(self, name: str, default: int, *, low: int, high: int) -> int:
        """A whole number in ASCII digits, from low to high."""
        value = self.text(name)
        if not value:
            return default
        if not (value.isascii() and value.lstrip("-").isdigit() and len(value) <= 19 and low <= int(value) <= high):
            raise ImproperlyConfigured(f"{name}={value!r}: write a whole number from {low} to {high}.")
        return int(value)

    def names(self, name: str, default: list[str]) -> list[str]:
        """A list separated by commas; blanks around the entries are dropped."""
        value = self.text(name)
        return [part.strip() for part in value.split(",") if part.strip()] if value else default

    def http_url(self, name: str, default: str) -> str:
        """An http(s) address with a host and without user, query or fragment; no slash at its end."""
        value = self.text(name, default)
        try:
            parts = urlsplit(value)
            good = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
        except ValueError:
            good = False
        if not good or parts.username or parts.query or parts.fragment:
            raise ImproperlyConfigured(f"{name}={value!r}: write an address such as http://127.0.0.1:8081.")
        return value.rstrip("/")

    def database(self, name: str, default: Path) -> dict[str, Any]:
        """Django's dict for `sqlite:///PATH` or `postgres://USER:PASSWORD@HOST:PORT/NAME`.

        A password in a broken address is not repeated in the message.
        """
        value = self.text(name, f"sqlite:///{default}")
        try:
            config: dict[str, Any] = dict(environ.Env.db_url_config(value))
        except (ValueError, KeyError, ImproperlyConfigured):
            config = {}
        engine = config.get("ENGINE", "")
        if engine not in {"django.db.backends.sqlite3", "django.db.backends.postgresql"} or not config.get("NAME"):
            scheme = value.split(":", 1)[0][:20]
            raise ImproperlyConfigured(
                f"{name} (an address of kind {scheme!r}): write sqlite:////absolute/path or postgres://user:password@host/name."
            )
        if engine.endswith("sqlite3") and Path(config["NAME"]).is_dir():
            raise ImproperlyConfigured(f"{name}: {config['NAME']} is a directory; name a file in it.")
        config["HOST"] = unquote(config.get("HOST") or "")  # django-environ leaves %2F of a socket directory as it is
        return config


def secret_key(env: Env, folder: Path) -> str:
    """SECRET_KEY from the environment, else from a private file that the first run makes.

    The file is created with mode 0600 and O_EXCL under a name of its own and then linked into place, so that two
    first runs at once agree on one key.
    """
    given = env.text("SECRET_KEY")
    if given:
        if len(given) < 50:
            raise ImproperlyConfigured("SECRET_KEY: at least 50 characters (its value is not shown here).")
        return given
    path = folder / "secret_key"
    if not path.exists():
        fresh = folder / f"secret_key.{os.getpid()}"
        try:
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(64))
            os.link(fresh, path)
        except FileExistsError:
            pass  # another first run was faster
        except OSError as error:
            raise ImproperlyConfigured(f"The secret key cannot be kept in {path}: {error.strerror}.") from None
        finally:
            fresh.unlink(missing_ok=True)
    key = path.read_text().strip()
    if len(key) < 50:
        raise ImproperlyConfigured(f"The secret key in {path} is damaged: remove the file to have a new one made.")
    return key
