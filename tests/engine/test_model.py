"""The engine and its model take the same random path and must stand at the same place after every step."""

from contextlib import ExitStack

import hypothesis
import pytest
from django.contrib.auth.models import User
from django.db import transaction
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from queue_app.models import Failure, Job, LateFinish, Redrive, RedriveOutcome, Unblock
from queue_app.policy.errors import Conflict, NotDead
from queue_app.services import handing_out, leases, queue
from queue_app.store import queues
from tests.engine import invariants, model
from tests.engine.rows import T, declare

JOBS = st.sampled_from("abcdef")
PICK = st.integers(0, 59)
NEAR = st.sampled_from([0, 0, 0, 0, -1, 1, -2])  # mostly the job's own token
OUTCOMES = st.sampled_from(["ok", "retry", "retry", "permanent"])
CODES = st.sampled_from(["", "http_503", "http_422"])
SPANS = st.sampled_from([1, 999, 1_000, 2_500, 3_000, 3_001, 20_000])
DEADLINES = st.sampled_from([None, None, -1, 0, 1, 3_000, 9_000])
# where an order's body comes from: the id alone, so that the same id is mostly the same order
BODY = {job_id: ("snacks" if job_id < "c" else "tables", "" if job_id in "af" else "k") for job_id in "abcdef"}
COLUMNS = (
    "state", "reason", "code", "attempts", "max_attempts", "token", "owner", "lease_until", "available_at", "deadline",
    "quantity", "waited_ms", "redriven",
)  # fmt: skip


class Engine(RuleBasedStateMachine):
    """Each example runs in a savepoint that is rolled back."""

    lead: User

    def __init__(self) -> None:
        super().__init__()
        self.undo = ExitStack()
        self.undo.enter_context(transaction.atomic())
        self.undo.callback(transaction.set_rollback, True)
        for name, ordering in (("snacks", "independent"), ("tables", "ordered")):
            declare(
                name, ordering=ordering, budget_ms=model.BUDGET_MS, lease_ms=model.LEASE_MS,
                wait_base_ms=model.WAIT_BASE_MS, wait_cap_ms=model.WAIT_CAP_MS, wait_budget_ms=model.WAIT_BUDGET_MS,
            )  # fmt: skip
        self.model = model.Model(handing_out.BURIALS_PER_CALL)
        self.now = T
        self.tokens: dict[str, int] = {}
        self.handed: set[tuple[str, int]] = set()
        self.steps = 0

    def teardown(self) -> None:
        """Liveness, then back to nothing: with the faults over, everything due ends."""
        self.check_everything()
        self.drain()
        self.check_everything()
        self.undo.close()

    def pick(self, number: int, state: str) -> str:
        """A job, most often one that stands in this state: a random id alone would seldom be worth the call."""
        fitting = sorted(job.id for job in self.model.jobs.values() if job.state == state)
        return (
            (fitting or list("abcdef"))[number // 5 % len(fitting or "abcdef")] if number % 5 else "abcdef"[number % 6]
        )

    def token(self, job_id: str, near: int) -> int:
        known = self.model.jobs.get(job_id)
        return max((known.token if known else 0) + near, 0)

    @initialize(outcome=OUTCOMES)
    def begin(self, outcome):
        """Something of each state to begin with: one job has had its attempt, one is being delivered, others wait."""
        for job_id in "abcde":
            self.enqueue(job_id, 1, 2, None)
        self.claim("w1", "snacks", 2, None)
        self.finish_one("a", 1, outcome, "http_422", None)

    @rule(job_id=JOBS, quantity=st.sampled_from([1, 1, 1, 2]), tries=st.integers(1, 3), deadline=DEADLINES)
    def enqueue(self, job_id, quantity, tries, deadline):
        name, key = BODY[job_id]
        until = None if deadline is None else self.now + deadline
        expected = self.model.enqueue(job_id, quantity, name, key, tries, until, self.now)
        try:
            answer = queue.enqueue(
                job_id, quantity, queue=name, order_key=key, max_attempts=tries, deadline_ms=until, now_ms=self.now
            )
        except Conflict:
            answer = "conflict"
        assert answer == expected

    @rule(
        owner=st.sampled_from(["w1", "w2"]),
        name=st.sampled_from(["snacks", "tables"]),
        limit=st.integers(1, 4),
        lease_ms=st.sampled_from([None, 500, 9_000]),
    )
    def claim(self, owner, name, limit, lease_ms):
        expected = self.model.claim(owner, name, limit, lease_ms or model.LEASE_MS, self.now)
        taken = queue.claim(owner, queue=name, limit=limit, lease_ms=lease_ms, now_ms=self.now)
        assert [(lease.id, lease.attempt, lease.token, lease.lease_until) for lease in taken] == expected
        for lease in taken:
            assert (lease.id, lease.token) not in self.handed, "a token handed out twice"
            self.handed.add((lease.id, lease.token))

    @rule(number=PICK, near=NEAR, outcome=OUTCOMES, code=CODES, wish=st.sampled_from([None, None, 0, 3_500]))
    def finish(self, number, near, outcome, code, wish):
        job_id = self.pick(number, "leased")
        self.finish_one(job_id, self.token(job_id, near), outcome, code, wish)

    def finish_one(self, job_id, token, outcome, code, wish):
        expected = self.model.finish(job_id, token, outcome, code, wish, self.now)
        assert queue.finish(job_id, token, outcome, code=code, retry_after_ms=wish, now_ms=self.now) is expected

    @rule(number=PICK, near=NEAR, lease_ms=st.sampled_from([None, 1, 9_000]))
    def renew(self, number, near, lease_ms):
        job_id = self.pick(number, "leased")
        token = self.token(job_id, near)
        expected = self.model.renew(job_id, token, lease_ms or model.LEASE_MS, self.now)
        assert queue.renew(job_id, token, lease_ms=lease_ms, now_ms=self.now) is expected

    @rule(number=PICK, near=NEAR)
    def release(self, number, near):
        job_id = self.pick(number, "leased")
        token = self.token(job_id, near)
        assert queue.release(job_id, token, now_ms=self.now) is self.model.release(job_id, token, self.now)

    @rule(number=PICK, near=NEAR, code=st.sampled_from(["bad_ack", "exception"]))
    def record_unknown(self, number, near, code):
        job_id = self.pick(number, "leased")
        token = self.token(job_id, near)
        expected = self.model.record_unknown(job_id, token, code)
        assert leases.record_unknown(job_id, token, code, now_ms=self.now) is expected

    @rule(number=PICK, tries=st.sampled_from([None, 1, 3]), deadline=DEADLINES)
    def redrive(self, number, tries, deadline):
        job_id = self.pick(number, "dead")
        if job_id not in self.model.jobs:
            return
        until = None if deadline is None else self.now + deadline
        expected = self.model.redrive(job_id, tries, until, self.now)
        try:
            queue.redrive(
                job_id, "INC-1", approved_by=self.lead, max_attempts=tries, deadline_ms=until, now_ms=self.now
            )
            answer = True
        except NotDead:
            answer = False
        assert answer is expected

    @rule(number=PICK)
    def unblock(self, number):
        job_id = self.pick(number, "dead")
        job = self.model.jobs.get(job_id)
        if job and job.state == "dead" and job.token not in job.unblocked_at:
            job.unblocked_at.add(job.token)
            Unblock.objects.create(job_id=job_id, token=job.token, at_ms=self.now, note="INC-1", by=self.lead)

    @rule(name=st.sampled_from(["snacks", "tables"]))
    def pause_or_go_on(self, name):
        self.model.paused ^= {name}
        queues.set_paused(name, paused=name in self.model.paused)

    @rule(ms=SPANS)
    def wait(self, ms):
        self.now += ms

    @rule(
        number=PICK,
        column=st.sampled_from(["lease_until", "available_at", "deadline"]),
        by=st.sampled_from([-1, 0, 0, 1]),
    )
    def claim_at_a_boundary(self, number, column, by):
        """The instants at which mistakes by one show, and a claim that would show them."""
        job = self.model.jobs.get(self.pick(number, "leased" if column == "lease_until" else "pending"))
        at = getattr(job, column) if job else None
        if at is not None and at + by >= self.now:
            self.now = at + by
            self.claim("w2", job.queue, 4, None)

    @rule()
    def the_clock_goes_back(self):
        self.now -= 1_500

    @invariant()
    def both_stand_at_the_same_place(self):
        stored = {row.pop("id"): row for row in Job.objects.values("id", *COLUMNS)}
        assert stored == {j.id: {name: getattr(j, name) for name in COLUMNS} for j in self.model.jobs.values()}
        rows: dict = {job_id: {} for job_id in stored}
        for job_id, token, *told in Failure.objects.values_list(
            "job_id", "token", "attempt", "outcome", "code", "worker"
        ):
            rows[job_id][token] = tuple(told)
        assert rows == {job.id: job.failures for job in self.model.jobs.values()}
        assert set(LateFinish.objects.values_list("job_id", "token")) == self.model.late
        told = [(j.id, r["token"], *r["was"]) for j in self.model.jobs.values() for r in j.redrives]
        assert set(Redrive.objects.values_list("job_id", "token", "reason", "code")) == set(told)
        ended = {(j.id, r["token"], r["outcome"]) for j in self.model.jobs.values() for r in j.redrives if r["outcome"]}
        assert set(RedriveOutcome.objects.values_list("job_id", "token", "outcome")) == ended

    @invariant()
    def the_invariants_hold(self):
        self.steps += 1
        if self.steps % 4 == 0:  # whatever they find stays wrong, so it need not be looked for after every step
            self.check_everything()
        for job_id, token in Job.objects.values_list("id", "token"):
            assert token >= self.tokens.get(job_id, 0), "a token fell"
            self.tokens[job_id] = token

    def check_everything(self):
        invariants.check_jobs()
        invariants.check_evidence()
        invariants.check_counters()
        invariants.check_chain()

    def drain(self):
        """Workers that succeed, until nothing is left but what a person must decide on."""
        for name in ("snacks", "tables"):
            queues.set_paused(name, paused=False)
        for _ in range(8):  # one round for each order of a key, and some to spare
            self.now += 20_000
            for name in ("snacks", "tables"):
                for lease in queue.claim("w9", queue=name, limit=9, now_ms=self.now):
                    assert queue.finish(lease.id, lease.token, "ok", now_ms=self.now)
        left = Job.objects.filter(state__in=["pending", "leased"]).values_list("id", "queue", "order_key")
        dead = set(Job.objects.filter(state="dead", queue="tables").values_list("queue", "order_key"))
        assert all((name, key) in dead for _, name, key in left), f"neither ended nor behind a dead order: {list(left)}"


@pytest.mark.django_db
@pytest.mark.parametrize("burials", [1, 100])
def test_the_engine_does_what_its_model_does(team_lead, monkeypatch, burials):
    monkeypatch.setattr(handing_out, "BURIALS_PER_CALL", burials)
    monkeypatch.setattr(Engine, "lead", team_lead, raising=False)
    run_state_machine_as_test(
        Engine, settings=hypothesis.settings(max_examples=40, stateful_step_count=40, deadline=None, print_blob=True)
    )
