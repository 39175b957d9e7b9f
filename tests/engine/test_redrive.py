"""Out of quarantine: only dead, only approved, only whole (DESIGN sections 4 and 5, "redrive")."""

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.db import DatabaseError
from django.test import override_settings

from queue_app.models import AuditEvent, Job, Redrive, RedriveOutcome
from queue_app.policy.errors import Held, InvalidNote, InvalidOrder, NotAllowed, NotDead, UnknownJob
from queue_app.policy.plans import CLOSED, OPEN
from queue_app.services import queue
from queue_app.store import chain, jobs
from tests.engine.invariants import check_all
from tests.engine.rows import DAY, LEASE, T, declare, failures, hold, kill, put, row, snapshot, stand, take

pytestmark = pytest.mark.django_db
LATER = T + 3_600_000


def test_a_redrive_restarts_with_a_new_budget_and_keeps_token_body_and_evidence(team_lead, operator):
    put("a", quantity=41, payload={"item": "guac"}, order_key="k")
    queue.finish("a", take().token, "retry", code="http_503", now_ms=T)
    queue.finish("a", take(at=T + 1_000).token, "permanent", code="http_422", now_ms=T + 1_000)
    dead, rows = row("a"), failures("a")
    queue.redrive("a", "INC-7/b", approved_by=team_lead, requested_by=operator, batch=12, now_ms=LATER)
    assert row("a") == {
        **dead, "state": "pending", "reason": "", "code": "", "attempts": 0, "available_at": LATER,
        "deadline": LATER + DAY, "changed_at_ms": LATER, "redriven": 1, "batch": 12, "waited_ms": 0,
    }  # fmt: skip
    assert (dead["token"], dead["waited_ms"]) == (2, 1_000)
    assert failures("a") == rows
    told = Redrive.objects.values().get()
    del told["id"], told["hash"], told["link"]
    assert told == {
        "job_id": "a", "token": 2, "at_ms": LATER, "note": "INC-7/b", "queue": "snacks", "reason": "permanent",
        "code": "http_422", "old_attempts": 2, "old_max_attempts": 3, "old_deadline": T + DAY, "new_max_attempts": 3,
        "new_deadline": LATER + DAY, "requested_by_id": operator.pk, "approved_by_id": team_lead.pk, "batch": 12,
        "solo": False,
    }  # fmt: skip
    event = AuditEvent.objects.get()
    assert (event.action, event.target, event.note, event.actor, event.name, event.roles, event.at_ms) == (
        "redrive", "job:a", "INC-7/b", team_lead, "tom", "team_lead", LATER,
    )  # fmt: skip
    check_all(["a"])


def test_a_program_may_ask_and_the_budget_may_be_named(team_lead):
    kill("a")
    queue.redrive("a", "x", approved_by=team_lead, max_attempts=9, deadline_ms=LATER + 5, now_ms=LATER)
    assert (row("a")["max_attempts"], row("a")["deadline"]) == (9, LATER + 5)
    assert Redrive.objects.values_list("requested_by", "batch", "new_max_attempts", "new_deadline").get() == (
        None, None, 9, LATER + 5,
    )  # fmt: skip


def test_the_new_deadline_follows_the_queues_budget(team_lead):
    declare("drinks", budget_ms=7_000)
    kill("a", name="drinks")
    queue.redrive("a", "x", approved_by=team_lead, now_ms=LATER)
    assert row("a")["deadline"] == LATER + 7_000


def test_a_restarted_job_gets_a_token_above_all_earlier_ones_and_the_old_owner_is_fenced(team_lead):
    put("a", max_attempts=1)
    old = take("w1")
    queue.claim("w2", now_ms=T + LEASE)
    queue.redrive("a", "x", approved_by=team_lead, now_ms=LATER)
    assert not queue.finish("a", old.token, "ok", now_ms=LATER)
    assert (take("w3", at=LATER).token, old.token) == (3, 1)
    assert not queue.finish("a", 2, "ok", now_ms=LATER)
    check_all(["a"])


ENDS = [
    (("permanent", "http_422"), "dead_same"),
    (("permanent", "http_409"), "dead_other"),
    (("ok", ""), "done"),
    (("retry", "http_422"), "dead_other"),
]


@pytest.mark.parametrize(("end", "outcome"), ENDS)
def test_the_first_end_after_a_redrive_is_its_outcome(team_lead, end, outcome):
    kill("a")
    queue.redrive("a", "x", approved_by=team_lead, max_attempts=1, batch=3, now_ms=LATER)
    queue.finish("a", take(at=LATER).token, end[0], code=end[1], now_ms=LATER)
    fields = ("token", "batch", "was_reason", "was_code", "outcome", "end_token")
    assert RedriveOutcome.objects.values_list(*fields).get() == (1, 3, "permanent", "http_422", outcome, 2)
    check_all(["a"])


def test_a_second_redrive_has_an_outcome_of_its_own(team_lead):
    kill("a")
    for turn in (1, 2):
        queue.redrive("a", "x", approved_by=team_lead, deadline_ms=LATER, now_ms=LATER)
        assert queue.claim("w1", now_ms=LATER) == []  # too late at once
        assert stand("a") == ("dead", "deadline", "http_422" if turn == 1 else "", 0, 1 + turn)
    assert list(RedriveOutcome.objects.order_by("token").values_list("token", "outcome")) == [
        (1, "dead_other"), (2, "dead_other"),
    ]  # fmt: skip
    assert row("a")["redriven"] == 2
    check_all(["a"])


# --- refusals -------------------------------------------------------------------------------------------------------


def refused(error, job_id="a", note="INC-1", **more):
    """The redrive is refused with one sentence, and nothing at all has changed."""
    before = snapshot()
    with pytest.raises(error) as caught:
        queue.redrive(job_id, note, now_ms=LATER, **more)
    assert str(caught.value).endswith(".")
    assert snapshot() == before
    return str(caught.value)


def test_neither_operator_nor_auditor_may_approve(operator, auditor):
    kill("a")
    for user in (operator, auditor):
        assert refused(NotAllowed, approved_by=user) == "Only team leads may do this."


def test_a_superusers_implicit_rights_do_not_count(team_lead):
    kill("a")
    root = User.objects.create_superuser("root", password="x")
    root.user_permissions.set(Permission.objects.all())
    refused(NotAllowed, approved_by=root)
    root.groups.add(Group.objects.get(name="operator"))
    refused(NotAllowed, approved_by=root)
    root.groups.add(Group.objects.get(name="team_lead"))
    queue.redrive("a", "x", approved_by=root, now_ms=LATER)


def test_rights_are_those_of_this_moment_not_of_a_page(team_lead):
    kill("a")
    stale = User.objects.get(pk=team_lead.pk)
    assert list(stale.groups.all())
    User.objects.filter(pk=team_lead.pk).update(is_active=False)
    assert refused(NotAllowed, approved_by=stale) == "This account is deactivated."
    User.objects.filter(pk=team_lead.pk).update(is_active=True)
    team_lead.groups.clear()
    refused(NotAllowed, approved_by=stale)
    refused(NotAllowed, approved_by=User(username="unsaved"))
    refused(NotAllowed, approved_by=AnonymousUser())


def test_nobody_approves_what_they_asked_for(team_lead):
    kill("a")
    renamed = User.objects.get(pk=team_lead.pk)
    renamed.username = "somebody-else"
    refused(NotAllowed, approved_by=team_lead, requested_by=team_lead)
    refused(NotAllowed, approved_by=team_lead, requested_by=renamed)
    refused(NotAllowed, approved_by=team_lead, requested_by=AnonymousUser())  # not a program, nobody


def test_solo_approval_is_a_setting_and_is_recorded(team_lead, operator):
    kill("a")
    kill("b")
    with override_settings(SOLO_APPROVAL=True):
        queue.redrive("a", "x", approved_by=team_lead, requested_by=team_lead, now_ms=LATER)
        assert Redrive.objects.get().solo is True
        check_all(["a"])
        refused(NotAllowed, "b", approved_by=operator, requested_by=operator)


@pytest.mark.parametrize("state", ["pending", "leased", "done"])
def test_only_the_dead_are_restarted(team_lead, state):
    put("a")
    if state != "pending":
        take()
    if state == "done":
        queue.finish("a", 1, "ok", now_ms=T)
    assert refused(NotDead, approved_by=team_lead) == "Order a is not in quarantine."


def test_a_second_redrive_of_the_same_death_is_refused(team_lead):
    kill("a")
    queue.redrive("a", "x", approved_by=team_lead, now_ms=LATER)
    refused(NotDead, approved_by=team_lead)


def test_a_restart_whose_job_moved_meanwhile_is_no_restart(team_lead):
    kill("a")
    dead = jobs.read("a")
    queue.redrive("a", "x", approved_by=team_lead, now_ms=LATER)
    budget = {"max_attempts": 9, "deadline": LATER, "batch": None, "now_ms": LATER}
    before = row("a")
    assert jobs.restart("a", dead.token, **budget) is False  # pending with the same token
    take(at=LATER)
    queue.finish("a", 2, "permanent", now_ms=LATER)
    assert jobs.restart("a", dead.token, **budget) is False  # dead again with another one
    assert (before["max_attempts"], row("a")["state"]) == (3, "dead")


def test_an_unknown_order_is_said_to_be_unknown(team_lead):
    assert refused(UnknownJob, "none", approved_by=team_lead) == "No order has the id none."


@pytest.mark.parametrize("state", OPEN)
def test_an_order_held_by_another_open_plan_stays(team_lead, operator, state):
    kill("a")
    plan = hold("a", operator, state=state)
    sentence = refused(Held, approved_by=team_lead)
    assert f"R-{plan}" in sentence
    refused(Held, approved_by=team_lead, batch=plan + 1)
    queue.redrive("a", "x", approved_by=team_lead, batch=plan, now_ms=LATER)
    assert row("a")["batch"] == plan


@pytest.mark.parametrize("state", CLOSED)
def test_the_hold_of_a_closed_plan_counts_no_more(team_lead, operator, state):
    kill("a")
    hold("a", operator, state=state)
    queue.redrive("a", "x", approved_by=team_lead, now_ms=LATER)


BAD_NOTES = [
    "", "x" * 65, "two words", "ok\nINFO forged", "ok\r", "ok\t", "ok\n", "a\0", "\x1b[31mred", "\u202eabc", "a\u200bb",
    "\u0430pproved", "=1+1", "<b>", "${jndi:..}", "%s", "{{7*7}}", "/x", "..", "\uff29\uff2e\uff23", "caf\u00e9",
    "\ud800", None, 5, True, b"INC-1", [], {},
]  # fmt: skip


@pytest.mark.parametrize("note", BAD_NOTES, ids=lambda note: ascii(note)[:16])
def test_a_bad_note_is_refused_before_any_query(note, team_lead, django_assert_num_queries):
    with django_assert_num_queries(0), pytest.raises(InvalidNote, match=r"(?s)\.?$") as caught:
        queue.redrive("a", note, approved_by=team_lead)
    assert str(caught.value).isascii()
    assert str(caught.value).isprintable()


BAD_ARGUMENTS = [
    ({"id": ""}, InvalidOrder), ({"id": "\ud800"}, InvalidOrder), ({"id": "a\0"}, InvalidOrder),
    ({"id": 5}, InvalidOrder), ({"max_attempts": 0}, ValueError), ({"max_attempts": True}, ValueError),
    ({"max_attempts": 101}, ValueError), ({"max_attempts": 1.0}, ValueError), ({"deadline_ms": -1}, ValueError),
    ({"deadline_ms": "5"}, ValueError), ({"deadline_ms": 10**400}, ValueError),
]  # fmt: skip


@pytest.mark.parametrize(
    ("bad", "error"), BAD_ARGUMENTS, ids=lambda v: next(iter(v)) if isinstance(v, dict) else v.__name__
)
def test_what_cannot_be_meant_is_refused_before_any_query(bad, error, team_lead, django_assert_num_queries):
    arguments = {"id": "a", "note": "INC-1", "approved_by": team_lead, **bad}
    with django_assert_num_queries(0), pytest.raises(error, match=r"\.$"):
        queue.redrive(**arguments)


@pytest.mark.parametrize("broken", ["_INSERT_EVENT", "_INSERT_REDRIVE"])
def test_if_the_record_cannot_be_written_nothing_restarts(team_lead, monkeypatch, broken):
    kill("a")
    monkeypatch.setattr(chain, broken, "INSERT INTO no_such_table VALUES (%s)")
    before = Job.objects.values().get()
    with pytest.raises((DatabaseError, TypeError)):
        queue.redrive("a", "INC-1", approved_by=team_lead, now_ms=LATER)
    assert Job.objects.values().get() == before
    assert not Redrive.objects.exists()
    assert not AuditEvent.objects.exists()
