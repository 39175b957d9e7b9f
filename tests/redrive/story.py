"""Steps of a redrive's story, made by the product's own services: tests read as what people do."""

from django.contrib.auth.models import User

from queue_app.models import Plan
from queue_app.policy.approvals import Tightening
from queue_app.policy.filters import Filter
from queue_app.policy.selections import Selection, by_filter
from queue_app.policy.terms import Terms
from queue_app.services import approvals, freezing, plans, queue, ticks
from queue_app.services.approvals import Proof
from queue_app.services.receipts import Receipt
from queue_app.services.ticks import Tick
from tests.conftest import PASSWORD, Clock

SNACKS = by_filter(Filter(queue="snacks"))
FAST = Terms(1_000_000, canary=0)


def die(n: int, *, first: int = 1, code: str = "http_503", outcome: str = "permanent", prefix: str = "o") -> list[str]:
    """`n` orders accepted, handed out and quarantined; their ids."""
    ids = [f"{prefix}{first + k}" for k in range(n)]
    for start in range(0, n, 500):
        some = ids[start : start + 500]
        queue.enqueue_many([{"id": job_id, "quantity": 1, "max_attempts": 1} for job_id in some])
        leases = queue.claim("w", limit=500)
        queue.finish_many([queue.Result(lease.id, lease.token, outcome, code) for lease in leases])
    return ids


def work(outcome: str = "ok", *, code: str = "", limit: int = 1_000) -> int:
    """A worker's round: every due order is claimed and ends so; how many."""
    n = 0
    while leases := queue.claim("w", limit=limit):
        queue.finish_many([queue.Result(lease.id, lease.token, outcome, code) for lease in leases])
        n += len(leases)
    return n


def ask(user: User, selection: Selection = SNACKS, terms: Terms = FAST, **more: str) -> Plan:
    """A plan as it stands after it was asked for."""
    receipt = plans.ask(user, selection, terms, note="INC-1", **more)  # type: ignore[arg-type]
    return Plan.objects.get(pk=receipt.plan)


def frozen(plan: Plan, size: int = 2_000) -> Plan:
    """The plan once a redriver has made the rest of its list."""
    while (progress := freezing.step(plan.pk, size)) is not None and not progress.done:
        pass
    plan.refresh_from_db()
    return plan


def prove(user: User) -> Proof:
    """The proof that the right password gives."""
    return approvals.confirm_identity(user, PASSWORD)


def approve(user: User, plan: Plan, *, tightening: Tightening = Tightening(), **more: object) -> Receipt:  # noqa: B008
    """Approve what stands now, the number typed."""
    plan.refresh_from_db()
    given = {
        "round": plan.round + 1,
        "digest": plan.digest,
        "note": "OK-1",
        "typed": str(plan.planned - plan.redriven - plan.skipped),
        "tightening": tightening,
    } | more
    given.setdefault("proof", prove(user) if "proof" not in given else None)
    return approvals.approve(user, plan.pk, **given)  # type: ignore[arg-type]


def approved(asker: User, lead: User, terms: Terms = FAST, selection: Selection = SNACKS) -> Plan:
    """A plan that was asked for and approved."""
    plan = frozen(ask(asker, selection, terms))
    approve(lead, plan)
    plan.refresh_from_db()
    return plan


def run(plan: Plan, clock: Clock, *, ticks_at_most: int = 10_000, bite: int = ticks.MAX_BITE) -> Tick:
    """Tick, moving the clock to when the next is due, until the batch does not run any more or waits for results."""
    ticks.begin(plan.pk)
    for _ in range(ticks_at_most):
        done = ticks.tick(plan.pk, bite=bite)
        if done.due_ms is None or done.due_ms == ticks.POLL_MS:
            break
        clock.advance(done.due_ms)
    plan.refresh_from_db()
    return done


def halted_by_its_trial(clock: Clock, asker: User, lead: User) -> Plan:
    """20 on the list, 4 that died since it was fixed, and a trial of 10 that all died again of what they had died of."""
    die(20)
    plan = approved(asker, lead, Terms(1_000_000, canary=10))
    clock.advance(1_000)
    die(4, first=100)
    run(plan, clock)
    work("permanent", code="http_503")
    run(plan, clock)
    assert plan.state == "halted"
    return plan
