"""Everything that a worker's turn has to know before it writes, asked at once: on PostgreSQL that is one round trip."""

from collections.abc import Collection
from typing import NamedTuple

from queue_app.store import ends, jobs, queues
from queue_app.store.database import is_postgresql, now_ms
from queue_app.store.ends import HeldRow
from queue_app.store.jobs import JobRow
from queue_app.store.queues import Standing
from queue_app.store.statements import Statement, fetch_all


class Glance(NamedTuple):
    """How the queue stands (None: not declared), the jobs that the ends name, and those due (None: not looked for)."""

    standing: Standing | None
    held: dict[str, HeldRow]
    due: list[JobRow] | None


def glance(queue: str, ended: Collection[str], at_ms: int | None, ahead: int) -> Glance:
    """Inside a write transaction. Looks for up to `ahead` due jobs of an independent queue, 0 for none; they and the ended
    ones are locked on PostgreSQL. `at_ms` None: by the clock of the database, at the instant at which due jobs were sought.
    """
    if at_ms is None and not is_postgresql():
        at_ms = now_ms()
    asked: list[Statement] = [queues.standing_statement(queue)]
    if ended:
        asked.append(ends.held_statement(ended))
    if ahead:
        asked.append(jobs.due_statement(queue, at_ms, ahead))
    answers = iter(fetch_all(asked))
    standing = queues.standing_of(next(answers))
    held = ends.held_of(next(answers)) if ended else {}
    due = next(answers) if ahead else None
    if due and at_ms is None:
        at_ms = due[0][-1]
        due = [row[:-1] for row in due]
    if standing is not None and at_ms is not None:
        standing = standing._replace(now_ms=at_ms)
    return Glance(standing, held, None if due is None else jobs.due_of(due))


def held_now(ended: Collection[str], at_ms: int | None) -> tuple[int, dict[str, HeldRow]]:
    """Inside a write transaction: the instant, and the jobs that ends (at least one) name, as `ends.held` finds them."""
    if at_ms is not None or not is_postgresql():
        return now_ms() if at_ms is None else at_ms, ends.held(ended)
    ((moment,),), held = fetch_all([("SELECT snackops_now_ms()", []), ends.held_statement(ended)])
    return moment, ends.held_of(held)
