"""Moving house: an installation on SQLite becomes the same installation on PostgreSQL (docs/operations.md).

All or nothing: one transaction of the new house holds the whole copy and its verification. The old one is only read, under
its write lock, so that nothing can change there meanwhile.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, DataError, IntegrityError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from queue_app.models import Process
from queue_app.policy.chain import Anchor
from queue_app.policy.recounting import Difference
from queue_app.services import counting, verification
from queue_app.services.life_signs import BEAT_MS
from queue_app.store import copies, database, houses, triggers
from queue_app.store.copies import Sum

SILENT_BEATS = 3


class CannotMove(Exception):
    """Why not, in one sentence; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What was copied and proved: rows by table, the anchor on both sides, counters that disagreed before already."""

    rows: dict[str, int]
    anchor: Anchor
    differences: tuple[Difference, ...]


def move(config: dict[str, Any], *, told: Callable[[str], object] = lambda _line: None) -> Moved:
    """Copy everything from the default database (SQLite) to the PostgreSQL of `config` (Django's dict), and prove it.

    CannotMove when the target is not empty, a worker or redriver lives, the record is not whole, or any table does not
    read back the same: then the target has its empty tables, or nothing, and the source is as it was.
    """
    source = connections[DEFAULT_DB_ALIAS]
    if database.is_postgresql() or not config["ENGINE"].endswith("postgresql"):
        raise CannotMove("The move goes from SQLite (DATABASE_URL) to PostgreSQL (--to).")
    target = houses.open_house(config)
    try:
        with _locked_source():
            anchor = _whole_record()
            _make_ready(source, target)
            with houses.living_in(target), transaction.atomic():
                return _copied(source, target, anchor, told)
    finally:
        target.close()


@contextmanager
def _locked_source() -> Iterator[None]:
    """Nobody writes into the old house while it is read; those that try are told to try again."""
    with database.write():
        alive_since = database.now_ms() - SILENT_BEATS * BEAT_MS
        alive = Process.objects.filter(seen_at_ms__gt=alive_since, stopped_at_ms=None).order_by("name")
        names = list(alive.values_list("name", flat=True)[:5])
        if names:
            raise CannotMove(f"These still live here: {', '.join(names)}. Stop all workers and redrivers first.")
        yield


def _whole_record() -> Anchor:
    report = verification.verify()
    if report.broken is not None:
        raise CannotMove(f"The record is not whole: {report.broken.sentence}")
    return report.head


def _make_ready(source: BaseDatabaseWrapper, target: BaseDatabaseWrapper) -> None:
    found = copies.inhabited(target)
    if found:
        raise CannotMove(f"The new database is not empty: {', '.join(found[:5])}.")
    with houses.living_in(target):
        call_command("migrate", verbosity=0, interactive=False)
    here, there = copies.migrations(source), copies.migrations(target)
    if here != there:
        missing = ", ".join(".".join(one) for one in sorted(there ^ here)[:3])
        raise CannotMove(f"The old database is at another version ({missing}): run `manage.py migrate` on it first.")


def _copied(
    source: BaseDatabaseWrapper, target: BaseDatabaseWrapper, anchor: Anchor, told: Callable[[str], object]
) -> Moved:
    names = copies.natural_keys(source)
    copies.make_missing(target, names)
    new = copies.natural_keys(target)
    lost = [key for model, keys in names.items() for key in set(keys.values()) - set(new[model].values())]
    if lost:
        raise CannotMove(f"The new database does not know {'.'.join(map(str, min(lost)))}.")
    triggers.drop_all()  # counters are copied, and frozen lists written anew: the guards come back before the commit
    sums: dict[str, Sum] = {}
    for table in copies.tables():
        try:
            sums[table.name] = copies.copy(source, target, table, names, new)
        except (DataError, IntegrityError):
            raise CannotMove(f"The table {table.name} holds a value that PostgreSQL does not take.") from None
        told(f"{table.name}: {sums[table.name].rows:,} rows")
    copies.set_sequences(source, target)
    triggers.create_all()
    _prove(target, sums, anchor)
    differences = counting.check(wait=lambda _seconds: None).differences
    return Moved({name: one.rows for name, one in sums.items()}, anchor, differences)


def _prove(target: BaseDatabaseWrapper, sums: dict[str, Sum], anchor: Anchor) -> None:
    """Read everything back: the same rows, the same record, every guard in force."""
    names = copies.natural_keys(target)
    for table in copies.tables():
        if copies.sum_of(target, table, names) != sums[table.name]:
            raise CannotMove(f"The table {table.name} does not read back as it was. Nothing was moved.")
    report = verification.verify()
    if report.broken is not None or report.head != anchor:
        raise CannotMove("The record does not read back as it was. Nothing was moved.")
    absent = triggers.missing()
    if absent:
        raise CannotMove(f"Guards are missing: {', '.join(absent[:5])}. Nothing was moved.")


def prepare(config: dict[str, Any]) -> None:
    """After the move: let the new database's planner know its tables."""
    house = houses.open_house(config)
    try:
        copies.analyze(house)
    finally:
        house.close()
