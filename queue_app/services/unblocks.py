"""Letting the later orders of a key pass one that is in quarantine: a team lead's move (DESIGN sections 4 and 9).

It counts for this stay in quarantine only: a redrive that fails again blocks again.
"""

from dataclasses import dataclass

from django.contrib.auth.models import User

from queue_app.policy.errors import NotDead, SnackOpsError, UnknownJob, gettext_noop
from queue_app.policy.notes import check_note
from queue_app.policy.orders import check_id
from queue_app.reads.behind import behind
from queue_app.services.asking import recorded
from queue_app.services.people import actor_of, require
from queue_app.store import chain, database, jobs, queues, unblocks


class NotOrdered(SnackOpsError, ValueError):
    """The order keeps no other back: its queue keeps no order, or it has no key."""


@dataclass(frozen=True, slots=True)
class UnblockReceipt:
    """Later orders pass `job` at `token` since `at_ms`. `first`: by this very call; else `by` was faster."""

    job: str
    token: int
    first: bool
    by: str
    at_ms: int
    waiting: int


@database.retried
def unblock(
    user: User, job_id: str, *, token: int, note: str, channel: str = "console", proof: str = "session"
) -> UnblockReceipt:
    """Let later orders of the same key pass this one, which is dead at the token that the person saw.

    Raises InvalidOrder (the id) and InvalidNote before any query; NotAllowed (recorded), UnknownJob, NotOrdered, NotDead
    (also when it died anew since the person looked). A second call changes nothing and gives the first's receipt.
    """
    check_id(job_id)
    check_note(note)
    with recorded(user, "unblock", f"job:{job_id}", channel=channel, proof=proof), database.write():
        actor = actor_of(user, channel=channel, proof=proof)
        require(actor, "unblock")
        job = jobs.read(job_id, lock=True)
        if job is None:
            raise UnknownJob(gettext_noop("No order has the id %(job)s."), job=job_id)
        policy = queues.policy_of(job.queue)
        if policy is None or policy.ordering != "ordered" or not job.order_key:
            raise NotOrdered(gettext_noop("%(job)s keeps no other order back."), job=job_id)
        if job.state != "dead" or type(token) is not int or job.token != token:
            raise NotDead(gettext_noop("%(job)s is not in quarantine as you saw it: look again."), job=job_id)
        done = unblocks.of(job_id, token)
        if done is not None:
            return UnblockReceipt(job_id, token, first=False, by=done[0], at_ms=done[1], waiting=0)
        now = database.now_ms()
        if not unblocks.add(job_id, token, at_ms=now, note=note, by=actor.id):
            raise RuntimeError(f"Job {job_id} moved inside the transaction that holds it.")
        waiting = behind(job_id).n
        chain.append(
            [actor.event("unblock", f"job:{job_id}", now, note=note, token=token, queue=job.queue, waiting=waiting)]
        )
        return UnblockReceipt(job_id, token, first=True, by=actor.name, at_ms=now, waiting=waiting)
