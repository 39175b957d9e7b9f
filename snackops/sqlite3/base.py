"""A file that exists is opened with mode=rw. SQLite itself would make a missing one, so that a worker whose database was
renamed or deleted would go on in an empty one and accept every id anew. The first connection of a process may still make
it: `migrate` on a new machine, and tests.
"""

from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.db.backends.sqlite3 import base

_lived: set[str] = set()


class DatabaseWrapper(base.DatabaseWrapper):
    """Knows which files this process has been in."""

    def get_connection_params(self) -> dict[str, Any]:
        """As Django's, with mode=rw once the file is there or was."""
        params: dict[str, Any] = super().get_connection_params()
        path = str(params["database"])
        if path.startswith("file:") or path == ":memory:":
            return params
        if path in _lived or Path(path).exists():
            _lived.add(path)
            params["database"] = f"file:{quote(path)}?mode=rw"
        return params

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """From now on the file must stay where it is."""
        made = super().get_new_connection(conn_params)
        path = str(self.settings_dict["NAME"])
        if Path(path).exists():
            _lived.add(path)
        return made

    def forget(self) -> None:
        """Let this process make the file once more: for tests that remove their database and make it anew."""
        _lived.discard(str(self.settings_dict["NAME"]))
