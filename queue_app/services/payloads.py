"""Looking at what an order contains: a permission of its own, and each look is recorded (DESIGN section 9)."""

from django.contrib.auth.models import User

from queue_app.policy.errors import NotAllowed, UnknownJob, gettext_noop
from queue_app.policy.orders import check_id
from queue_app.services import people
from queue_app.services.asking import recorded
from queue_app.store import chain, database, jobs


@database.retried
def look(user: User, job_id: str, *, channel: str = "console", proof: str = "session") -> str:
    """The payload's canonical JSON text. Its audit event is written in the same transaction, or nothing is shown.

    Raises InvalidOrder for a bad id before any query, NotAllowed (recorded), UnknownJob.
    """
    target = f"job:{check_id(job_id)}"
    with recorded(user, "payload_look", target, channel=channel, proof=proof), database.write():
        actor = people.actor_of(user, channel=channel, proof=proof)
        people.require(actor, "read")
        if not people.may_see_payload(user):
            raise NotAllowed(gettext_noop("Only people with a permission of its own may see what an order contains."))
        job = jobs.read(job_id)
        if job is None:
            raise UnknownJob(gettext_noop("No order has the id %(job)s."), job=job_id)
        chain.append([actor.event("payload_look", target, database.now_ms(), token=job.token)])
        return job.payload
