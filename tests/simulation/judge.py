"""What was told against what is there: orders lost, things that nobody did, things done twice, and what was recovered."""

from collections import Counter
from dataclasses import dataclass, field

from queue_app.models import AuditEvent, Failure, Job, Redrive
from tests.engine.invariants import check_all
from tests.redrive.invariants import check_plans
from tests.simulation.world import World


@dataclass(slots=True)
class Verdict:
    """Sentences for each kind of wrong; `recovered`: calls with an unknown outcome that turned out to have happened."""

    lost: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    duplicated: list[str] = field(default_factory=list)
    recovered: int = 0

    def wrong(self) -> list[str]:
        """Everything that must not be."""
        return [f"{kind}: {what}" for kind in ("lost", "unexpected", "duplicated") for what in getattr(self, kind)]


def judged(world: World) -> Verdict:
    """The verdict on a world that was drained; raises AssertionError when an invariant of the tables is broken."""
    verdict = Verdict()
    jobs = {job.id: job for job in Job.objects.all()}
    _orders(world, jobs, verdict)
    _tokens(world, jobs, verdict)
    _effects(world, jobs, verdict)
    _evidence(world, verdict)
    _people(world, verdict)
    if not verdict.wrong():
        check_all()
        check_plans()
    return verdict


def _orders(world: World, jobs: dict[str, Job], verdict: Verdict) -> None:
    wanted: dict[str, set[int]] = {}
    for event in world.history.of("enqueue", "ok", "unknown", "fail", "refused"):
        for place, (job_id, quantity) in enumerate(event.about["orders"]):
            wanted.setdefault(job_id, set()).add(quantity)
            told = event.answer[place] if event.phase == "ok" else ""
            if told in ("accepted", "duplicate") and job_id not in jobs:
                verdict.lost.append(f"{job_id} was {told} (call {event.number}) and is not there")
            elif told in ("accepted", "duplicate") and jobs[job_id].quantity != quantity:
                verdict.unexpected.append(f"{job_id} was {told} with {quantity} and holds {jobs[job_id].quantity}")
    accepted = Counter(
        job_id
        for event in world.history.of("enqueue", "ok")
        for (job_id, _), told in zip(event.about["orders"], event.answer, strict=True)
        if told == "accepted"
    )
    verdict.duplicated += [f"{job_id} was accepted {n} times" for job_id, n in accepted.items() if n > 1]
    verdict.recovered += len(set(jobs) - set(accepted))
    verdict.unexpected += [f"{job_id} is there and nobody sent it" for job_id in set(jobs) - set(wanted)]


def _tokens(world: World, jobs: dict[str, Job], verdict: Verdict) -> None:
    last: dict[str, int] = {}
    for event in world.history.of("claim", "ok"):
        for lease in event.answer:
            if lease.token <= last.get(lease.id, 0):
                verdict.duplicated.append(
                    f"{lease.id}: token {lease.token} was handed out after token {last[lease.id]}"
                )
            last[lease.id] = lease.token
    ended: set[tuple[str, int]] = set()
    told_ok: set[tuple[str, int]] = set()
    for event in world.history.of("finish", "ok", "unknown"):
        for place, (job_id, token, outcome) in enumerate(event.about["results"]):
            if outcome == "ok":
                told_ok.add((job_id, token))
            if event.phase == "ok" and event.answer[place]:
                if (job_id, token) in ended:
                    verdict.duplicated.append(f"{job_id}: token {token} ended twice")
                ended.add((job_id, token))
                if outcome == "ok" and (jobs[job_id].state, jobs[job_id].token) != ("done", token):
                    stands = f"{jobs[job_id].state} at {jobs[job_id].token}"
                    verdict.lost.append(f"{job_id} was delivered at token {token} and is {stands}")
    for job in jobs.values():
        if job.state == "done" and (job.id, job.token) not in told_ok:
            verdict.unexpected.append(f"{job.id} is done at token {job.token}, which nobody finished")
        verdict.recovered += job.state == "done" and (job.id, job.token) not in ended


def _effects(world: World, jobs: dict[str, Job], verdict: Verdict) -> None:
    effects, quantities = world.receiver.effects, world.receiver.quantities
    verdict.duplicated += [f"{job_id} took effect {n} times" for job_id, n in effects.items() if n > 1]
    verdict.unexpected += [f"{job_id} took effect and was never ordered" for job_id in effects if job_id not in jobs]
    for job in jobs.values():
        if job.state == "done" and job.id not in effects:
            verdict.lost.append(f"{job.id} is done and the receiver never had it")
        if job.id in quantities and quantities[job.id] != job.quantity:
            verdict.unexpected.append(f"{job.id}: {quantities[job.id]} delivered, {job.quantity} ordered")


def _evidence(world: World, verdict: Verdict) -> None:
    told = {
        (job_id, token, outcome)
        for event in world.history.of("finish", "ok", "unknown")
        for job_id, token, outcome in event.about["results"]
    }
    done = dict(Job.objects.filter(state="done").values_list("id", "token"))
    for row in Failure.objects.all():
        if row.outcome in ("retry", "permanent") and (row.job_id, row.token, row.outcome) not in told:
            verdict.unexpected.append(f"{row.job_id}: a failure of token {row.token} that nobody told")
        if done.get(row.job_id) == row.token and row.outcome != "unknown":
            verdict.duplicated.append(f"{row.job_id}: token {row.token} is done and {row.outcome}")
    for job in Job.objects.filter(state="dead", reason="permanent"):
        if (job.id, job.token, "permanent") not in told:
            verdict.unexpected.append(f"{job.id} is refused at token {job.token}, which nobody told")
    approved = {event.about["plan"] for event in world.history.of("approve", "ok", "unknown")}
    verdict.unexpected += [
        f"{row.job_id} was redriven without an approval" for row in Redrive.objects.exclude(batch__in=approved)
    ]


def _people(world: World, verdict: Verdict) -> None:
    """Each change by a person has its event, once, and no event without one."""
    for op, action in (
        ("ask", "plan.ask"), ("approve", "plan.approve"), ("reject", "plan.reject"), ("withdraw", "plan.withdraw"),
        ("pause", "batch.pause"), ("resume", "batch.resume"), ("stop", "batch.stop"),
    ):  # fmt: skip
        events = AuditEvent.objects.filter(action=action, actor__isnull=False).count()
        sure = sum(event.answer is not False for event in world.history.of(op, "ok"))
        unsure = sum(1 for _ in world.history.of(op, "unknown"))
        if events < sure:
            verdict.lost.append(f"{sure} times {op} was told as done, {events} events")
        if events > sure + unsure:
            verdict.unexpected.append(f"{events} events {action}, {sure} calls told as done and {unsure} unsure")
        verdict.recovered += max(0, events - sure)
