"""What must hold of the lease protocol: in every state, and of every step."""

from tests.protocol.lease_world import World, bit, owns


def moved(before: World, after: World, who: str) -> str:
    """The rule that this move of the job breaks, or ''."""
    old, new = before.job, after.job
    if new.token < old.token:
        return "a token never goes back"
    if old.state == "dead" and new.state != "dead" and who != "the redriver":
        return "what is dead leaves by a redrive only"
    if old.state == "done" and new != old:
        return "what is done stays done"
    return ""


def stale(before: World, after: World, token: int) -> str:
    """The rule that a step with this token breaks, or ''."""
    old, new = before.job, after.job
    return "a token that does not own the job changes nothing" if old != new and not owns(old, token) else ""


def broken(world: World) -> str:
    """The rule that does not hold in this state, or ''."""
    job = world.job
    held = [worker.token for worker in world.workers if worker.doing in ("holds", "finish")]
    if len(held) != len(set(held)):
        return "two workers hold one token"
    if any(token > job.token for token in held):
        return "a worker holds a token that the job has not reached"
    if job.attempts > job.most or job.given > job.most:
        return "a job is handed out as often as its budget says, not more"
    if (job.state == "leased") != (job.lease is not None) or (job.state == "dead") != (job.reason != ""):
        return "lease and reason belong to their states"
    if job.state == "done" and world.evidence & bit(job.token):
        return "no token is both done and failed"
    if job.state == "dead" and not world.evidence & (bit(job.token) | bit(max(job.token - 1, 0))):
        return "what is dead has evidence"
    return ""


def ended(world: World) -> bool:
    """Delivered, or in quarantine where a person decides."""
    return world.job.state in ("done", "dead")
