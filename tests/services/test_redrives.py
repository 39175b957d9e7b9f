"""One order out of quarantine: the whole row, the whole record of it, each refusal with its values."""

import dataclasses
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction

from queue_app.models import AuditEvent, Redrive
from queue_app.policy.errors import Held, InvalidNote, InvalidOrder, NotAllowed, NotDead, SnackOpsError, UnknownJob
from queue_app.policy.orders import MAX_INSTANT_MS
from queue_app.services import redrives
from queue_app.services.redrives import Names
from queue_app.store import restarts
from queue_app.store.chain import Event, RedriveRow
from tests.conftest import Clock
from tests.engine.rows import T, declare, hold, kill, row, snapshot
from tests.services.told import told

pytestmark = pytest.mark.django_db
LATER = T + 3_600_000
BUDGET_MS = 7_000


@pytest.fixture
def dead() -> dict[str, Any]:
    """Order `a` of a queue with a budget of its own is in quarantine, refused for good at its first try."""
    declare("drinks", budget_ms=BUDGET_MS)
    kill("a", name="drinks")
    return row("a")


def kept(job_id: str, **columns: object) -> dict[str, object]:
    """What the record keeps of a redrive of an order that died as those of `dead` did."""
    return {
        "job_id": job_id, "token": 1, "at_ms": LATER, "note": "INC-7", "queue": "drinks", "reason": "permanent",
        "code": "http_422", "old_attempts": 1, "old_max_attempts": 3, "old_deadline": T + BUDGET_MS,
        "new_max_attempts": 3, "new_deadline": LATER + BUDGET_MS, "requested_by": None, "batch": None, "solo": False,
    } | columns  # fmt: skip


def stored() -> list[dict[str, object]]:
    """The redrives rows as `kept` names their columns."""
    names = [field.name for field in dataclasses.fields(RedriveRow)]
    return list(Redrive.objects.order_by("link").values(*names))


@pytest.mark.parametrize(
    ("given", "columns"),
    [
        ({}, {}),
        ({"batch": 12}, {"batch": 12}),
        ({"requested_by": "oda", "max_attempts": 1, "deadline_ms": 0}, {"new_max_attempts": 1, "new_deadline": 0}),
        (
            {"max_attempts": 100, "deadline_ms": MAX_INSTANT_MS},
            {"new_max_attempts": 100, "new_deadline": MAX_INSTANT_MS},
        ),
        ({"max_attempts": 7}, {"new_max_attempts": 7}),
        ({"deadline_ms": 1}, {"new_deadline": 1}),
        ({"requested_by": "tom"}, {"solo": True}),
    ],
    ids=str,
)
def test_an_order_starts_again_and_the_record_says_all(
    dead: dict[str, Any], clock: Clock, operator: User, team_lead: User, settings: Any,
    given: dict[str, Any], columns: dict[str, Any],
) -> None:  # fmt: skip
    settings.SOLO_APPROVAL = True
    asker = {"oda": operator, "tom": team_lead}.get(given.get("requested_by", ""))
    kill("b", name="drinks")
    other = row("b")
    clock.now = LATER
    redrives.redrive("a", "INC-7", approved_by=team_lead, **given | {"requested_by": asker})
    asked = {"requested_by": asker.pk if asker else None, "approved_by": team_lead.pk}
    (made,) = stored()
    assert made == kept("a", **columns) | asked
    assert row("a") == dead | {
        "state": "pending", "reason": "", "code": "", "attempts": 0, "max_attempts": made["new_max_attempts"],
        "available_at": LATER, "deadline": made["new_deadline"], "changed_at_ms": LATER, "redriven": 1,
        "batch": made["batch"], "waited_ms": 0,
    }  # fmt: skip
    assert row("b") == other
    assert told(0) == [
        Event(LATER, "redrive", "job:a", team_lead.pk, "tom", "team_lead", "INC-7", "code", "",
              {"token": 1, "batch": made["batch"]})
    ]  # fmt: skip


def test_the_instant_may_be_given_and_a_queue_that_nobody_declared_has_no_budget(
    dead: dict[str, Any], clock: Clock, team_lead: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redrives.queues, "policy_of", lambda _queue: None)
    clock.now = LATER + 5
    redrives.redrive("a", "INC-7", approved_by=team_lead, now_ms=LATER)
    assert stored() == [kept("a", approved_by=team_lead.pk, new_deadline=LATER)]
    assert AuditEvent.objects.get().at_ms == LATER


# --- refusals -----------------------------------------------------------------------------------------------------------


def refused(
    kind: type[SnackOpsError], sentence: str, job_id: str = "a", /, *, by: Any, **more: Any
) -> dict[str, object]:
    """It is refused with exactly this sentence, and nothing at all has changed; gives the values in it."""
    before = snapshot()
    with pytest.raises(kind) as caught:
        redrives.redrive(job_id, "INC-7", approved_by=by, now_ms=LATER, **more)
    assert (type(caught.value), str(caught.value), snapshot()) == (kind, sentence, before)
    return caught.value.values


def test_who_may_not_is_told_why(dead: dict[str, Any], operator: User, team_lead: User) -> None:
    own = "Nobody approves what they asked for themselves."
    refused(NotAllowed, "Only team leads may do this.", by=operator)
    refused(NotAllowed, "This account is deactivated.", by=AnonymousUser())
    refused(NotAllowed, own, by=team_lead, requested_by=team_lead)
    refused(NotAllowed, "Nobody is signed in.", by=team_lead, requested_by=AnonymousUser())
    refused(NotAllowed, "Nobody is signed in.", by=team_lead, requested_by=User(username="unsaved"))
    assert redrives.approver_of(team_lead, operator).id == redrives.approver_of(team_lead, None).id == team_lead.pk


def test_what_is_not_there_to_be_redriven_is_named(
    dead: dict[str, Any], operator: User, team_lead: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refused(UnknownJob, "No order has the id zz.", "zz", by=team_lead) == {"job": "zz"}
    plan = hold("a", operator, state="proposed")
    held = f"Order a is held by redrive R-{plan}."
    for batch in (None, plan + 1):
        assert refused(Held, held, by=team_lead, batch=batch) == {"job": "a", "plan": plan}
    redrives.redrive("a", "INC-7", approved_by=team_lead, batch=plan, now_ms=LATER)
    assert refused(NotDead, "Order a is not in quarantine.", by=team_lead) == {"job": "a"}


def test_an_order_that_moved_meanwhile_is_refused(
    dead: dict[str, Any], team_lead: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redrives.jobs, "restart", lambda *_which, **_how: False)
    assert refused(NotDead, "Order a is not in quarantine any more.", by=team_lead) == {"job": "a"}


TRIES = "max_attempts must be a whole number from 1 to 100, or None."
INSTANT = "deadline_ms must be a whole number from 0 to 253,402,300,799,999, or None."


@pytest.mark.parametrize(
    ("given", "sentence"),
    [({"max_attempts": bad}, TRIES) for bad in (0, 101, True, "3", 3.0, -1)]
    + [({"deadline_ms": bad}, INSTANT) for bad in (-1, MAX_INSTANT_MS + 1, True, "3", 3.0)]
    + [({"max_attempts": 0, "deadline_ms": -1}, TRIES), ({"max_attempts": 1, "deadline_ms": -1}, INSTANT)],
    ids=str,
)
def test_a_budget_that_cannot_be_meant_is_refused_before_any_query(
    team_lead: User, django_assert_num_queries: Any, given: dict[str, Any], sentence: str
) -> None:
    with django_assert_num_queries(0):
        with pytest.raises(ValueError, match=r"\.$") as caught:
            redrives.redrive("a", "INC-7", approved_by=team_lead, **given)
        with pytest.raises(InvalidNote):
            redrives.redrive("", "", approved_by=team_lead, **given)
        with pytest.raises(InvalidOrder):
            redrives.redrive("", "INC-7", approved_by=team_lead, **given)
    assert (type(caught.value), str(caught.value)) == (ValueError, sentence)


# --- many at once -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("max_attempts", "tries"), [(None, 3), (5, 5)])
def test_orders_of_a_batch_start_again_together(
    dead: dict[str, Any], team_lead: User, max_attempts: int | None, tries: int
) -> None:
    kill("b", name="drinks")
    kill("c", name="drinks")
    other = row("c")
    how: dict[str, Any] = {"batch": 12, "max_attempts": max_attempts, "deadline": LATER + 9, "now": LATER}
    columns = {"new_max_attempts": tries, "new_deadline": LATER + 9, "batch": 12, "requested_by": 4, "approved_by": 5}
    with transaction.atomic():
        found, _busy = restarts.candidates(["a", "b"])
        rows = redrives.restart_batch([found["a"], found["b"]], "INC-7", Names(4, 5, True), **how)
        assert rows == [RedriveRow(**kept(job_id, **columns, solo=True)) for job_id in ("a", "b")]  # type: ignore[arg-type]
    for job_id in ("a", "b"):
        now = row(job_id)
        assert (now["state"], now["max_attempts"], now["deadline"], now["available_at"], now["batch"]) == (
            "pending", tries, LATER + 9, LATER, 12,
        )  # fmt: skip
    assert row("c") == other
    with transaction.atomic():
        c = restarts.candidates(["c"])[0]["c"]
        assert redrives.restart_batch([c, found["a"]], "INC-7", Names(None, 5, False), **how) is None
        transaction.set_rollback(True)
    assert redrives.restart_batch([], "INC-7", Names(None, 5, False), **how) == []
    assert Redrive.objects.count() == 0  # the caller chains them
