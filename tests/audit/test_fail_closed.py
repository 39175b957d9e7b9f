"""A change whose event cannot be written does not happen (FAULTS F69)."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Permission, User
from django.db import DatabaseError, connection

from queue_app.models import AuditEvent, Investigation, Job, Plan, Redrive, SavedFilter
from queue_app.policy.filters import Filter
from queue_app.policy.selections import by_filter
from queue_app.services import approvals, batches, looks, payloads, plans, queue, saved_filters
from queue_app.store import chain, triggers
from tests.conftest import Clock
from tests.redrive import story

pytestmark = pytest.mark.django_db

CHANGES: dict[str, Callable[[User, User, Plan], object]] = {
    "investigate": lambda oda, _tom, _plan: looks.record(oda, "job", "INC-1", "fixed", job_id="o1"),
    "ask": lambda oda, _tom, _plan: story.ask(oda, by_filter(Filter(queue="snacks", id_prefix="x"))),
    "approve": lambda _oda, tom, plan: story.approve(tom, plan),
    "withdraw": lambda oda, _tom, plan: plans.withdraw(oda, plan.pk),
    "reject": lambda _oda, tom, plan: reject(tom, plan),
    "cancel": lambda oda, _tom, plan: plans.cancel(oda, plan.pk),
    "pause": lambda oda, _tom, plan: batches.pause(oda, plan.pk),
    "resume": lambda oda, _tom, plan: batches.resume(oda, plan.pk),
    "set pace": lambda oda, _tom, plan: batches.set_pace(oda, plan.pk, 10),
    "stop": lambda oda, _tom, plan: batches.stop(oda, plan.pk),
    "go on": lambda _oda, tom, plan: story.approve(tom, plan),
    "redrive": lambda oda, tom, _plan: queue.redrive("x1", "INC-1", approved_by=tom, requested_by=oda),
    "keep a filter": lambda oda, _tom, _plan: saved_filters.save(oda, "mine", Filter(queue="snacks"), for_all=True),
    "look at contents": lambda oda, _tom, _plan: payloads.look(oda, "o1"),
}


RUNNING = ("pause", "set pace", "stop")
PAUSED = ("resume", "go on")


def reject(lead: User, plan: Plan) -> object:
    """The lead's no."""
    proof = story.prove(lead)
    return approvals.reject(lead, plan.pk, round=1, digest=plan.digest, note="NO-1", proof=proof)


def stands(what: str, operator: User, team_lead: User) -> Plan:
    """A plan in a state in which this change is possible."""
    if what in (*RUNNING, *PAUSED):
        plan = story.approved(operator, team_lead)
        if what in PAUSED:
            batches.pause(operator, plan.pk)
        return plan
    return story.ask(operator)


def state() -> list[object]:
    """Everything that a person's change could have touched."""
    plan_rows = list(Plan.objects.order_by("pk").values())
    jobs = list(Job.objects.order_by("pk").values())
    return [jobs, plan_rows, *(model.objects.count() for model in (AuditEvent, Redrive, Investigation, SavedFilter))]


@pytest.mark.parametrize("how", ["the program fails", "the database refuses"])
@pytest.mark.parametrize("what", sorted(CHANGES))
def test_without_its_event_nothing_changes(
    what: str,
    how: str,
    operator: User,
    team_lead: User,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    operator.user_permissions.add(Permission.objects.get(codename="view_payload"))
    story.die(3)
    clock.advance(1_000)
    with monkeypatch.context() as slow:
        if what == "cancel":
            slow.setattr("queue_app.services.plans.IN_REQUEST", -1)  # so that its list is still in the making
        plan = stands(what, operator, team_lead)
    story.die(1, prefix="x")
    clock.advance(1_000)
    before = state()
    with monkeypatch.context() as broken:
        if how == "the program fails":
            broken.setattr(chain, "append", _fails)
        else:
            _forbid_inserts()
        with pytest.raises(DatabaseError):
            CHANGES[what](operator, team_lead, plan)
    assert state() == before
    if how == "the program fails":
        CHANGES[what](operator, team_lead, plan)
        assert state() != before  # the same change goes through once its event can be written


def _fails(*_args: object) -> None:
    raise DatabaseError("disk full")


def _forbid_inserts() -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # a table with checks to come cannot be altered
            cursor.execute("ALTER TABLE audit ADD CONSTRAINT tests_full CHECK (seq < 0) NOT VALID")
        else:
            cursor.execute("CREATE TRIGGER tests_full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'full'); END")
    assert "audit_guard_update" not in triggers.missing()
