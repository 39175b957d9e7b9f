"""Every move of a person, as a case that can be killed: how things are made to stand before it, and how to see that it is
there. `tests/faults/test_kills_people.py` kills them, and asks whether one is missing here."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import Permission, User

from queue_app.models import (
    AuditEvent,
    Count,
    Investigation,
    Plan,
    Process,
    Queue,
    Reconciliation,
    SavedFilter,
    Unblock,
)
from queue_app.policy.terms import Terms
from queue_app.services import batches, life_signs, plans, queue, ticks
from tests.redrive.story import approve, ask, die, prove

SLOW = Terms(20_000, canary=0)


@dataclass
class Story:
    """A queue `snacks` with orders in quarantine, an ordered queue `tables`, and two people."""

    operator: User
    lead: User
    plan: Plan | None = None
    made: dict[str, Any] = field(default_factory=dict)

    def plan_in(self, state: str) -> Plan:
        """A redrive in that state: the one at hand where people's moves lead back to it, else a new one."""
        if self.plan is not None:
            self.plan.refresh_from_db()
            if {self.plan.state, state} == {"paused", "running"}:
                (batches.pause if state == "paused" else batches.resume)(self.operator, self.plan.pk)
            self.plan.refresh_from_db()
            if self.plan.state == state:
                return self.plan
        self.plan = ask(self.operator, terms=SLOW)
        if state in ("running", "paused"):
            approve(self.lead, self.plan)
            assert ticks.begin(self.plan.pk)
            return self.plan_in(state)
        assert self.plan.state == state
        return self.plan

    def told(self, action: str) -> int:
        """How many events of people or programs there are of a move."""
        return AuditEvent.objects.filter(action=action).count()


@dataclass(frozen=True)
class Case:
    """`ready` makes things stand as before the move and gives its arguments; `stands` is whether the move is there;
    `action` the name of its event, '' where a personal setting has none."""

    service: str
    move: str
    action: str
    ready: Callable[[Story], dict[str, Any]]
    stands: Callable[[Story], bool]


def _state_is(state: str) -> Callable[[Story], bool]:
    return lambda story: Plan.objects.get(pk=story.plan.pk).state == state


def _of_plan(state: str, **more: Any) -> Callable[[Story], dict[str, Any]]:
    return lambda story: {"user": story.operator.pk, "plan_id": story.plan_in(state).pk, **more}


def _full_pace(story: Story) -> dict[str, Any]:
    plan = story.plan_in("running")
    if plan.rate_mj == 500:
        batches.set_pace(story.operator, plan.pk, plan.approved_rate_mj)
    return {"user": story.operator.pk, "plan_id": plan.pk, "rate_mj": 500}


def _proposed(story: Story) -> dict[str, Any]:
    plan, proof = story.plan_in("proposed"), prove(story.lead)
    mark = [proof.kind, proof.user_id, proof.mark]
    return {"user": story.lead.pk, "plan_id": plan.pk, "digest": plan.digest, "proof": mark}


def _in_the_making(story: Story) -> dict[str, Any]:
    patient, plans.IN_REQUEST = plans.IN_REQUEST, -1  # the list is left to the redriver
    try:
        return {"user": story.operator.pk, "plan_id": story.plan_in("freezing").pk}
    finally:
        plans.IN_REQUEST = patient


REDRIVES = [
    Case("batches._move", "pause", "batch.pause", _of_plan("running"), _state_is("paused")),
    Case("batches._move", "resume", "batch.resume", _of_plan("paused"), _state_is("running")),
    Case("batches.set_pace", "pace", "batch.pace", _full_pace, lambda story: _plan(story).rate_mj == 500),
    Case("batches._move", "stop", "batch.stop", _of_plan("running"), _state_is("stopped")),
    Case("plans._take_back", "withdraw", "plan.withdraw", _of_plan("proposed"), _state_is("withdrawn")),
    Case("approvals._decide", "reject", "plan.reject", _proposed, _state_is("rejected")),
    Case("plans._take_back", "cancel", "plan.cancel", _in_the_making, _state_is("cancelled")),
]


def _plan(story: Story) -> Plan:
    return Plan.objects.get(pk=story.plan.pk)


# --- queues ---------------------------------------------------------------------------------------------------------


def _of_queue(before: dict[str, Any], after: dict[str, Any], **more: Any) -> dict[str, Any]:
    def ready(story: Story) -> dict[str, Any]:
        Queue.objects.filter(name="snacks").update(**before)
        return {"user": story.lead.pk, "name": "snacks", **more}

    def stands(_story: Story) -> bool:
        row = Queue.objects.filter(name="snacks").values(*after).get()
        assert row in (before, after), "half a move"
        return row == after

    return {"ready": ready, "stands": stands}


def _blocked(story: Story) -> dict[str, Any]:
    n = story.made["orders"] = story.made.get("orders", 0) + 1
    queue.enqueue(f"t{n}", 1, queue="tables", order_key=f"k{n}")
    (lease,) = queue.claim("w", queue="tables")
    assert queue.finish(f"t{n}", lease.token, "permanent", code="http_422")
    return {"user": story.lead.pk, "job_id": f"t{n}", "token": 1}


def _a_worker(story: Story) -> dict[str, Any]:
    life_signs.arrive("w1", "worker", "snacks")
    return {"user": story.lead.pk, "name": "w1"}


OPEN, SHUT = {"accepting": True}, {"accepting": False}
RUNS, WAITS = {"paused": False}, {"paused": True}
WIDE, TIGHT = {"delivery_rate_mj": None, "breaker_after": 20}, {"delivery_rate_mj": 4_000, "breaker_after": 5}

QUEUES = [
    Case("queues._move", "close_queue", "close_queue", **_of_queue(OPEN, SHUT)),
    Case("queues._move", "reopen_queue", "reopen_queue", **_of_queue(SHUT, OPEN)),
    Case("queues._move", "pause_queue", "pause_queue", **_of_queue(RUNS, WAITS)),
    Case("queues._move", "resume_queue", "resume_queue", **_of_queue(WAITS, RUNS)),
    Case("queues._move", "cancel_queue", "cancel_queue", **_of_queue(OPEN | RUNS, SHUT | WAITS)),
    Case("queues.set_limits", "limit_queue", "limit_queue", **_of_queue(WIDE, TIGHT, **TIGHT)),
    Case(
        "unblocks.unblock", "unblock", "unblock", _blocked,
        lambda story: Unblock.objects.filter(job_id=f"t{story.made['orders']}").exists(),
    ),
    Case(
        "workers.drain", "drain_worker", "drain_worker", _a_worker,
        lambda _story: Process.objects.get(pk="w1").draining,
    ),
]  # fmt: skip


# --- what people write down, save and look at -----------------------------------------------------------------------


def _counted(model: Any, **more: Any) -> dict[str, Any]:
    """A move that adds one row."""

    def ready(story: Story) -> dict[str, Any]:
        story.made[model] = model.objects.count()
        return {"user": story.operator.pk, **more}

    return {"ready": ready, "stands": lambda story: model.objects.count() == story.made[model] + 1}


def _filters(owner: bool) -> dict[str, Any]:
    def ready(story: Story) -> dict[str, Any]:
        SavedFilter.objects.all().delete()
        return {"user": story.operator.pk, "name": "Mine", "for_all": not owner}

    def stands(story: Story) -> bool:
        return SavedFilter.objects.filter(owner=story.operator if owner else None, name="Mine").exists()

    return {"ready": ready, "stands": stands}


def _kept_filter(story: Story) -> dict[str, Any]:
    kept, _ = SavedFilter.objects.get_or_create(
        owner=None, name="Ours", defaults={"made_by": story.operator, "query": "queue=snacks", "at_ms": 1}
    )
    return {"user": story.operator.pk, "filter_id": kept.pk}


def _may_see(story: Story) -> dict[str, Any]:
    permission = Permission.objects.get(content_type__app_label="queue_app", codename="view_payload")
    story.operator.user_permissions.add(permission)
    return _counted(AuditEvent)["ready"](story) | {"job_id": "o1"}


ONE_MORE_EVENT = _counted(AuditEvent)["stands"]
CAUSE = ["snacks", "permanent", "http_503"]

LOOKS = [
    Case("looks.record", "investigate", "investigate", **_counted(Investigation, scope="job", job_id="o1")),
    Case("looks.record", "investigate", "investigate", **_counted(Investigation, scope="group", group=CAUSE)),
    Case("looks.record", "investigate", "investigate", **_counted(Investigation, scope="filter", queue="snacks")),
    Case("saved_filters.save", "save", "save_filter", **_filters(owner=False)),
    Case("saved_filters.save", "save", "", **_filters(owner=True)),
    Case(
        "saved_filters.delete", "delete", "delete_filter", _kept_filter,
        lambda _story: not SavedFilter.objects.filter(name="Ours").exists(),
    ),
    Case("reconciling.record", "reconcile", "reconcile", **_counted(Reconciliation)),
    Case("payloads.look", "payload", "payload_look", _may_see, ONE_MORE_EVENT),
    Case("exports.record", "export", "export", **_counted(AuditEvent)),
]  # fmt: skip


# --- accounts, and what whoever runs the installation does ----------------------------------------------------------


def _new_name(story: Story) -> dict[str, Any]:
    n = story.made["names"] = story.made.get("names", 0) + 1
    return {"name": f"new-{n}", "role": "auditor", "see_payloads": True}


def _is_there(story: Story) -> bool:
    person = User.objects.filter(username=f"new-{story.made['names']}").first()
    whole = person is not None and person.groups.count() == person.user_permissions.count() == 1
    assert whole or person is None, "half an account"
    return whole


def _old_password(story: Story) -> dict[str, Any]:
    story.made["hash"] = User.objects.values_list("password", flat=True).get(pk=story.lead.pk)
    return {"user": story.lead.pk, "password": "another horse battery"}


def _miscounted(_story: Story) -> dict[str, Any]:
    place = {"queue": "nowhere", "state": "done", "stage": "", "reason": "", "code": ""}
    if not _nowhere():
        Count.objects.update_or_create(**place, slot=0, defaults={"n": 7})
    return {}


def _nowhere() -> int:
    return sum(Count.objects.filter(queue="nowhere").values_list("n", flat=True))


ACCOUNTS = [
    Case("accounts.set_person", "account", "account_set", _new_name, _is_there),
    Case(
        "sessions.change_password", "new_password", "password_change", _old_password,
        lambda story: User.objects.get(pk=story.lead.pk).password != story.made["hash"],
    ),
    Case("counting._mend", "rebuild", "recount", _miscounted, lambda _story: not _nowhere()),
]  # fmt: skip

ROOMS = {"redrives": REDRIVES, "queues": QUEUES, "looks": LOOKS, "accounts": ACCOUNTS}


def begun(operator: User, lead: User) -> Story:
    """The story before the first move."""
    die(4)
    die(2, first=20, code="http_422")
    return Story(operator, lead)
