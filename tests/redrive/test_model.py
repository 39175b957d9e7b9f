"""Plans and batches live along random interleavings; a model in plain Python says what each answer must be."""

import os
from contextlib import ExitStack

import pytest
from django.contrib.auth.models import Group, User
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from queue_app.models import Approval, Job, Plan, Redrive
from queue_app.policy.plans import CLOSED, EXPIRY_MS, MOVES, InvalidPlan, NothingToRedrive, PlanMoved
from queue_app.policy.terms import Terms
from queue_app.services import approvals, batches, plans, queue, ticks
from queue_app.services.asking import let_run_out
from tests.conftest import PASSWORD, START_MS, Clock
from tests.redrive.invariants import check_plans
from tests.redrive.story import SNACKS, die

MOSTLY = st.integers(0, 9).map(lambda n: n != 7)  # not 0, to which examples shrink
EXAMPLES = int(os.environ.get("SNACKOPS_EXAMPLES", "12"))


class Lives(RuleBasedStateMachine):
    """Two people, one queue, a clock by hand; every rule is one move of somebody. Rolled back after each example."""

    clock: Clock

    def __init__(self) -> None:
        super().__init__()
        self.undo = ExitStack()
        self.undo.enter_context(transaction.atomic())
        self.undo.callback(transaction.set_rollback, True)
        self.clock.now = START_MS
        self.born = 0
        self.states: dict[int, str] = {}
        self.people = [self._person("oda", "operator"), self._person("tom", "team_lead")]
        self.proof = approvals.confirm_identity(self.people[1], PASSWORD)

    @staticmethod
    def _person(name: str, role: str) -> User:
        user = User.objects.create_user(name, password=PASSWORD)
        user.groups.add(Group.objects.get(name=role))
        return user

    def teardown(self) -> None:
        """Back to nothing."""
        self.undo.close()

    @initialize(canary=st.integers(0, 4), rate=st.sampled_from([2_000, 50_000]))
    def a_batch_runs(self, canary: int, rate: int) -> None:
        """Most of a life comes after this: without it few examples would get so far."""
        self.orders_die(9, "http_503")
        self.orders_die(4, "http_422")
        self.somebody_asks(canary, None, rate)
        plan = Plan.objects.get()
        given = {"round": 1, "digest": plan.digest, "note": "OK-1", "proof": self.proof, "typed": "13"}
        approvals.approve(self.people[1], plan.pk, **given)
        ticks.begin(plan.pk)

    # --- what happens ---

    @rule(n=st.integers(1, 9), code=st.sampled_from(["http_503", "http_422"]))
    def orders_die(self, n: int, code: str) -> None:
        die(n, first=self.born + 1, code=code)
        self.born += n

    @rule(canary=st.integers(0, 3), cap=st.none() | st.integers(3, 6), rate=st.sampled_from([2_000, 1_000_000]))
    def somebody_asks(self, canary: int, cap: int | None, rate: int) -> None:
        if [state in CLOSED for state in self.states.values()].count(False) > 1:
            return  # they hold nearly every order
        free = Job.objects.filter(state="dead").exists()
        try:
            receipt = plans.ask(self.people[0], SNACKS, Terms(rate, canary=canary, cap=cap), note="INC-1")
        except NothingToRedrive:
            assert not free
            return
        assert free
        assert receipt.state in ("proposed", "cancelled")
        self.states[receipt.plan] = receipt.state

    def _any(self, data: st.DataObject) -> Plan:
        """Mostly one that is open: of the closed ones there are ever more, and little becomes of them."""
        alive = sorted(plan for plan, state in self.states.items() if state not in CLOSED)
        wanted = alive if alive and data.draw(MOSTLY) else sorted(self.states)
        return Plan.objects.get(pk=data.draw(st.sampled_from(wanted)))

    def _expected(self, plan: Plan, move: str) -> str | None:
        if plan.state in ("proposed", "approved") and self.clock.now >= plan.expires_at_ms:
            return None
        found = MOVES.get((plan.state, move))
        return found.to if found else None

    @precondition(lambda self: self.states)
    @rule(data=st.data(), approves=MOSTLY)
    def the_lead_decides(self, data: st.DataObject, approves: bool) -> None:
        rejects = not approves
        plan = self._any(data)
        move = "reject" if rejects else "approve" if plan.state == "proposed" else "continue"
        to = self._expected(plan, move)
        decide = approvals.reject if rejects else approvals.approve
        more = {} if rejects else {"typed": str(plan.planned - plan.redriven - plan.skipped)}
        given = {"round": plan.round + 1, "digest": plan.digest, "note": "OK-1", "proof": self.proof} | more
        had = Approval.objects.filter(plan=plan, round=plan.round + 1).exists()
        try:
            receipt = decide(self.people[1], plan.pk, **given)
        except PlanMoved:
            assert to is None
        else:
            assert receipt.first != had
            assert had or receipt.state == to

    @precondition(lambda self: self.states)
    @rule(data=st.data(), move=st.sampled_from(["pause", "resume", "stop", "withdraw"]))
    def somebody_steers(self, data: st.DataObject, move: str) -> None:
        plan = self._any(data)
        to = self._expected(plan, move)
        if move == "resume" and plan.why != "person":
            to = None
        act = {"pause": batches.pause, "resume": batches.resume, "stop": batches.stop, "withdraw": plans.withdraw}[move]
        before = (plan.state, plan.why)
        try:
            receipt = act(self.people[0], plan.pk)
        except PlanMoved:
            assert to is None
        else:
            again = {"pause": ("paused", "person"), "resume": ("running", ""), "stop": ("stopped", "person")}
            if receipt.first:
                assert receipt.state == to or (move == "resume" and receipt.state == "running")
            else:
                assert before == again.get(move, ("withdrawn", ""))

    @precondition(lambda self: self.states)
    @rule(data=st.data(), rate=st.sampled_from([10, 1_000, 2_000, 1_000_000]))
    def somebody_changes_the_pace(self, data: st.DataObject, rate: int) -> None:
        plan = self._any(data)
        try:
            batches.set_pace(self.people[0], plan.pk, rate)
        except PlanMoved:
            assert plan.state not in ("approved", "running", "paused")
        except InvalidPlan:
            assert rate > plan.approved_rate_mj

    @precondition(lambda self: self.states)
    @rule(data=st.data(), bite=st.integers(1, 5), turns=st.integers(1, 4))
    def a_redriver_comes_by(self, data: st.DataObject, bite: int, turns: int) -> None:
        plan = self._any(data)
        let_run_out(plan.pk)
        ticks.begin(plan.pk)
        for _ in range(turns):
            self.clock.advance(250)
            done = ticks.tick(plan.pk, bite=bite)
            assert done.redriven + done.skipped <= bite

    @rule(ms=st.sampled_from([50, 1_000, 60_000, 600_000]), long=MOSTLY)
    def time_passes(self, ms: int, long: bool) -> None:
        if not long:
            ms = EXPIRY_MS
        self.clock.advance(ms)

    @rule(outcome=st.sampled_from(["ok", "permanent"]), n=st.integers(1, 9))
    def a_worker_ends_orders(self, outcome: str, n: int) -> None:
        code = "" if outcome == "ok" else "http_503"
        for lease in queue.claim("w", limit=n):
            queue.finish(lease.id, lease.token, outcome, code=code)

    # --- what always holds ---

    @invariant()
    def the_tables_are_whole(self) -> None:
        check_plans()
        assert Redrive.objects.count() == sum(Plan.objects.values_list("redriven", flat=True))
        assert Plan.objects.filter(state="running").count() <= 1

    @invariant()
    def no_state_was_reached_but_by_a_legal_way(self) -> None:
        for plan in Plan.objects.all():
            was = self.states.get(plan.pk, plan.state)
            assert plan.state in _reachable(was), (was, plan.state)
            if was in CLOSED:
                assert plan.state == was
            self.states[plan.pk] = plan.state

    @invariant()
    def nothing_moved_without_an_approval(self) -> None:
        for plan in Plan.objects.filter(redriven__gt=0):
            assert Approval.objects.filter(plan=plan, decision="approve").exists()
            assert plan.rate_mj <= plan.approved_rate_mj <= plan.asked_rate_mj


def _reachable(state: str) -> set[str]:
    seen, todo = set(), {state}
    while todo:
        seen |= todo
        todo = {move.to for (source, _), move in MOVES.items() if source in todo} - seen
    return seen


@pytest.mark.django_db
@pytest.mark.timeout(600)
def test_plans_live_as_their_table_says(clock):
    Lives.clock = clock
    run_state_machine_as_test(
        Lives,
        settings=settings(
            max_examples=EXAMPLES, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
