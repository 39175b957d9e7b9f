"""Letting one worker finish and end, as before its host is stopped: a team lead's move, with its event (DESIGN section 9).

The worker looks at its row at least twice a second and then does what SIGTERM makes it do: nothing new begins, what runs
ends within its limit, the rest is given back with its try not spent, and the process ends. It cannot be taken back: a new
worker is started instead.
"""

from dataclasses import dataclass

from django.contrib.auth.models import User

from queue_app.policy.errors import SnackOpsError, gettext_noop
from queue_app.policy.notes import check_note
from queue_app.policy.orders import check_owner
from queue_app.policy.refusals import shown
from queue_app.services.asking import recorded
from queue_app.services.people import actor_of, require
from queue_app.store import chain, database, processes

TARGET_CHARACTERS = 128  # of the record's column; a worker's name may be as long, and stands whole in the detail


class UnknownWorker(SnackOpsError, LookupError):
    """No worker of this name ever said that it lives."""


class StartedAnew(SnackOpsError):
    """Another process works under the name than the one that the person saw."""


@dataclass(frozen=True, slots=True)
class WorkerReceipt:
    """`worker` takes nothing new. `first`: by this very call; else it was told before, or `stopped`, and nothing changed."""

    worker: str
    first: bool
    stopped: bool
    at_ms: int


@database.retried
def drain(
    user: User,
    name: str,
    *,
    started_at_ms: int | None = None,
    note: str = "",
    channel: str = "console",
    proof: str = "session",
) -> WorkerReceipt:
    """Tell the worker to take nothing new, finish and end; `started_at_ms` is that of the process that the person saw.

    Raises InvalidNote before any query; NotAllowed (recorded), UnknownWorker, StartedAnew.
    """
    if note:
        check_note(note)
    target = f"worker:{_checked(name)}"[:TARGET_CHARACTERS]
    with recorded(user, "drain_worker", target, channel=channel, proof=proof), database.write():
        actor = actor_of(user, channel=channel, proof=proof)
        require(actor, "drain_worker")
        worker = processes.find(name, lock=True)
        if worker is None or worker.kind != "worker":
            raise _unknown(name)
        if started_at_ms is not None and worker.started_at_ms != started_at_ms:
            raise StartedAnew(gettext_noop("%(worker)s has begun anew since you looked: look again."), worker=name)
        now = database.now_ms()
        first = processes.drain(name, worker.started_at_ms)
        if first:
            told = {"worker": name, "queue": worker.queue, "host": worker.host, "started_at_ms": worker.started_at_ms}
            chain.append([actor.event("drain_worker", target, now, note=note, **told)])
        return WorkerReceipt(name, first, worker.stopped_at_ms is not None, now)


def _checked(name: str) -> str:
    try:
        return check_owner(name)
    except ValueError:
        raise _unknown(shown(name)) from None


def _unknown(name: str) -> UnknownWorker:
    return UnknownWorker(gettext_noop("No worker %(worker)s ever said that it lives."), worker=name)
