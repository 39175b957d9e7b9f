"""Databases to lay orders in: files of SQLite, or databases of the server in DATABASE_URL. Each is removed in turn."""

import os
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

PASSWORD = "a good password"


class Place:
    """Where databases are laid."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._server = folder, os.environ.get("DATABASE_URL", "")
        os.environ["SNACKOPS_DATA"] = str(folder)

    def _sql(self, text: str) -> None:
        import psycopg

        with psycopg.connect(self._server, autocommit=True) as session:
            session.execute(text)  # type: ignore[call-overload]

    def lay(self, name: str) -> str:
        """The address of a new database."""
        if not self._server:
            return f"sqlite:///{self._folder / name}.sqlite3"
        self._sql(f"CREATE DATABASE {name}")
        return urlunsplit(urlsplit(self._server)._replace(path=f"/{name}"))

    def remove(self, name: str) -> None:
        """The database, its journal too."""
        if self._server:
            self._sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        for path in self._folder.glob(f"{name}.sqlite3*"):
            path.unlink()


def environ_of(address: str) -> dict[str, str]:
    """The environment of a process on this database."""
    return {
        **os.environ,
        "DATABASE_URL": address,
        "DJANGO_SETTINGS_MODULE": "snackops.settings",
        "SNACKOPS_LOG_LEVEL": "ERROR",
    }


def ready(total: int, *, dead_every: int) -> int:
    """Tables, people and, unless there are orders already, `total` of them in this process's database; the instant."""
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    from queue_app.models import Job
    from queue_app.services.accounts import set_person
    from queue_app.store import database
    from tests.bench import growth_rows

    settings.ALLOWED_HOSTS = ["*"]
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)  # whitenoise warns when it is missing
    call_command("migrate", verbosity=0)
    now = database.now_ms()  # by a function that the migrations make
    if Job.objects.exists():
        return now
    set_person("oda", role="operator", password=PASSWORD)
    set_person("tom", role="team_lead", password=PASSWORD)
    start = time.perf_counter()
    growth_rows.fill(
        total, now_ms=now, dead_every=dead_every, told=lambda line: print(f"  {line}", file=sys.stderr, end="\r")
    )
    print(f"  {total:,} orders laid in {time.perf_counter() - start:.0f} s     ", file=sys.stderr)
    return now


def frozen_plan(chunk_times: list[float] | None = None) -> int:
    """A plan over every dead order, its list made as a redriver makes it."""
    from django.contrib.auth.models import User

    from queue_app.policy.filters import Filter
    from queue_app.policy.selections import CHUNK, by_filter
    from queue_app.policy.terms import MAX_RATE_MJ, Terms
    from queue_app.services import freezing, plans

    plans.IN_REQUEST = -1
    oda = User.objects.get(username="oda")
    plan = plans.ask(oda, by_filter(Filter(queue="snacks")), Terms(MAX_RATE_MJ, canary=0), note="BENCH-1").plan
    size = CHUNK[0]
    while (progress := freezing.step(plan, size)) is not None and not progress.done:
        size = progress.size
        if chunk_times is not None:
            chunk_times.append(float(progress.held_ms))
    return plan
