"""Which delivered orders may go: what a look finds, where it ends, and that a removal asks everything again."""

import pytest
from django.contrib.auth.models import User

from queue_app.models import Hold, Investigation, Job, Plan, PlanItem
from queue_app.policy.plans import CLOSED, OPEN
from queue_app.policy.retention import DoneJob
from queue_app.store import done_jobs
from queue_app.store.done_jobs import Stretch
from tests.conftest import START_MS as T
from tests.store.changed import Asked
from tests.store.rows import job

pytestmark = pytest.mark.django_db
BEFORE = {"snacks": T, "drinks": T - 1_000}


def done(job_id: str, seq: int, at_ms: int = T - 1, **columns: object) -> Job:
    """Accepted and delivered at an instant; by itself just old enough."""
    return job(job_id, seq, state="done", **{"created_at_ms": at_ms, "changed_at_ms": at_ms} | columns)


def ids(found: Stretch) -> tuple[list[str], int, bool]:
    return [one.id for one in found.jobs], found.after, found.last


# --- one look -------------------------------------------------------------------------------------------------------
def test_a_removable_order_is_found_with_all_that_is_archived_of_it() -> None:
    done(
        "a", 5, T - 7, created_at_ms=T - 90, queue="snacks", order_key="k", quantity=3, payload='{"x":1}', attempts=2,
        token=9, redriven=4, batch=6,
    )  # fmt: skip
    assert done_jobs.stretch(BEFORE, 0, 10) == Stretch(
        [DoneJob("a", 5, "snacks", "k", 3, '{"x":1}', 2, 9, T - 90, T - 7, 4, 6)], 5, True
    )


def test_only_done_orders_of_a_queue_with_a_rule_go_once_they_are_older_than_it_says() -> None:
    snacks, drinks = [("young", T), ("old", T - 1)], [("border", T - 1_000), ("older", T - 1_001)]
    rows = [
        (queue, *one)
        for queue, some in (("snacks", snacks), ("drinks", drinks), ("tea", [("kept", 0)]))
        for one in some
    ]
    for seq, (queue, name, at_ms) in enumerate(rows, start=1):
        done(name, seq, at_ms, queue=queue)
    for seq, state in enumerate(("pending", "leased", "dead"), start=11):
        job(state, seq, state=state, created_at_ms=T - 9, changed_at_ms=T - 9)
    assert ids(done_jobs.stretch(BEFORE, 0, 10)) == (["old", "older"], 13, True)
    assert ids(done_jobs.stretch({"tea": 1}, 0, 10)) == (["kept"], 13, True)


@pytest.mark.parametrize("look", [1, 2])
def test_where_no_queue_has_a_rule_nothing_goes(look: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(done_jobs, "LOOK", look)
    done("a", 1, 0)
    assert done_jobs.stretch({}, 0, 10) == Stretch([], 1, True)


@pytest.mark.parametrize(
    ("after", "limit", "found"),
    [
        (-9, 9, (["a", "b", "c", "d"], 40, True)),
        (-9, 5, (["a", "b", "c", "d"], 40, True)),
        (-9, 4, (["a", "b", "c", "d"], 40, False)),
        (-9, 2, (["a", "b"], 20, False)),
        (-9, 1, (["a"], -3, False)),
        (-3, 9, (["b", "c", "d"], 40, True)),
        (-4, 9, (["a", "b", "c", "d"], 40, True)),
        (30, 1, (["d"], 40, False)),
        (39, 9, (["d"], 40, True)),
        (40, 9, ([], 40, True)),
        (77, 9, ([], 77, True)),
    ],
)
def test_a_look_begins_behind_its_place_and_takes_the_first_in_order_of_acceptance(
    after: int, limit: int, found: tuple[list[str], int, bool]
) -> None:
    for name, seq in (("d", 40), ("c", 30), ("b", 20), ("a", -3)):
        done(name, seq)
    assert ids(done_jobs.stretch(BEFORE, after, limit)) == found


@pytest.mark.parametrize(
    ("after", "accepted_ms", "found"),
    [
        (0, T - 2, (["a", "b"], 3, False)),  # as many as it looks at: there may be more behind
        (1, T - 2, (["b", "d"], 4, False)),
        (2, T - 2, (["d"], 4, True)),  # fewer: that was the end
        (0, T - 1, (["a", "b"], 3, False)),
        (0, T, (["a", "b"], 3, True)),  # nothing accepted from here on can be old enough
        (0, T + 1, (["a", "b"], 3, True)),
    ],
)
def test_a_look_ends_after_so_many_orders_removable_or_not(
    after: int, accepted_ms: int, found: tuple[list[str], int, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(done_jobs, "LOOK", 3)
    for seq, name in enumerate(("a", "b"), start=1):
        done(name, seq, created_at_ms=accepted_ms)
    job("c", 3, created_at_ms=accepted_ms)
    done("d", 4, created_at_ms=accepted_ms)
    assert ids(done_jobs.stretch(BEFORE, after, 9)) == found


def test_the_first_accepted_of_a_look_decides_whether_it_was_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(done_jobs, "LOOK", 2)
    done("a", 1, created_at_ms=T)
    done("b", 2, created_at_ms=T - 1)
    assert ids(done_jobs.stretch(BEFORE, 0, 9)) == (["a", "b"], 2, False)


# --- what refers to an order keeps it -------------------------------------------------------------------------------
def plan(*, sealed: bool = False) -> Plan:
    """A redrive whose list is being made."""
    return Plan.objects.create(
        queue="snacks", state="freezing", selection="{}", as_of_ms=T, note="n", created_at_ms=T, changed_at_ms=T,
        expires_at_ms=T, asked_rate_mj=1, rate_mj=1, sealed_at_ms=T if sealed else None,
    )  # fmt: skip


KEPT_BY_ITS_LIST = [(state, False) for state in (*OPEN, "ended", "stopped")] + [(state, True) for state in OPEN]


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("state", [*OPEN, *CLOSED])
def test_the_list_of_a_redrive_keeps_an_order_until_its_outcomes_are_sealed(state: str, sealed: bool) -> None:
    done("a", 1)
    done("b", 2)
    made = plan(sealed=sealed)
    PlanItem.objects.create(plan=made, pos=1, job_id="a", token=1, dead_since_ms=T)
    Plan.objects.filter(pk=made.pk).update(state=state)
    free = ["b"] if (state, sealed) in KEPT_BY_ITS_LIST else ["a", "b"]
    found = done_jobs.stretch(BEFORE, 0, 9).jobs
    assert [one.id for one in found] == free
    both = [DoneJob(one, 0, "snacks", "", 1, "{}", 1, 1, 0, 0, 0, None) for one in ("a", "b")]
    assert done_jobs.remove(both, BEFORE) == set(free)


@pytest.mark.parametrize("state", [*OPEN, *CLOSED])
def test_a_hold_keeps_an_order_while_its_plan_is_open(state: str) -> None:
    done("a", 1)
    made = plan()
    Plan.objects.filter(pk=made.pk).update(state=state)
    Hold.objects.create(job_id="a", plan=made)
    assert [one.id for one in done_jobs.stretch(BEFORE, 0, 9).jobs] == ([] if state in OPEN else ["a"])


def test_an_investigation_of_that_order_keeps_it(operator: User) -> None:
    done("a", 1)
    done("b", 2)
    more = {"at_ms": T, "by": operator, "by_name": "oda", "as_of_ms": T, "count": 1, "note": "n", "finding": "looking"}
    Investigation.objects.create(scope="job", job_id="a", **more)
    Investigation.objects.create(scope="group", **more)
    assert [one.id for one in done_jobs.stretch(BEFORE, 0, 9).jobs] == ["b"]


# --- the removal ----------------------------------------------------------------------------------------------------
def test_a_removal_asks_again_and_tells_which_went() -> None:
    for seq, name in enumerate(("a", "b", "young", "listed", "left"), start=1):
        done(name, seq)
    found = done_jobs.stretch(BEFORE, 0, 4).jobs
    Job.objects.filter(pk="young").update(changed_at_ms=T)
    PlanItem.objects.create(plan=plan(), pos=1, job_id="listed", token=1, dead_since_ms=T)
    assert done_jobs.remove(found, BEFORE) == {"a", "b"}
    assert set(Job.objects.values_list("id", flat=True)) == {"young", "listed", "left"}
    assert done_jobs.remove(found, BEFORE) == set()


@pytest.mark.parametrize(("postgresql", "locks"), [(True, " ORDER BY j.id FOR UPDATE SKIP LOCKED"), (False, "")])
def test_two_that_remove_at_once_pass_each_other_on_postgresql(
    postgresql: bool, locks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked([("b",)]).stand_in(monkeypatch, done_jobs, postgresql=postgresql)
    found = [DoneJob(one, 0, "snacks", "", 1, "{}", 1, 1, 0, 0, 0, None) for one in ("a", "b")]
    assert done_jobs.remove(found, BEFORE) == {"b"}
    older = "(j.queue = %s AND j.changed_at_ms < %s)"
    which = f"j.id IN (%s, %s) AND j.state = 'done' AND ({older} OR {older}) AND {done_jobs._FREE}"
    statement = f"DELETE FROM jobs WHERE id IN (SELECT j.id FROM jobs AS j WHERE {which}{locks}) RETURNING id"
    assert asked.statements == [(statement, ["a", "b", "drinks", BEFORE["drinks"], "snacks", BEFORE["snacks"]])]


def test_of_nothing_nothing_goes() -> None:
    done("a", 1)
    assert done_jobs.remove([], BEFORE) == set()
    assert Job.objects.count() == 1
