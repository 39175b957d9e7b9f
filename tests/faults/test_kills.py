"""kill -9 at every statement of people's moves and of moves for many at once: the change and its event, or neither."""

import pytest

from queue_app.models import AuditEvent, Gate, Investigation, Job, Plan, Queue, Unblock
from queue_app.services import queue
from queue_app.store import database
from tests.engine.invariants import check_all, check_chain
from tests.engine.mortals import mortals
from tests.engine.rows import DAY, declare
from tests.redrive.story import prove


@pytest.fixture
def every_point(real_database):
    """`every_point(move, prepare, changed)`: a death at point 1, 2, ... until one lives, each in a story of its own."""
    process = mortals(real_database.environ)

    def run(move, prepare, changed):
        seen = []
        for point in range(1, 300):
            status, answer = process.die("tests.faults.mortal", move, point, prepare(point))
            seen.append(changed(point))
            if status == 0:
                break
        assert seen[-2:] == [True, True], "the death after the commit, and the life"
        assert seen.count(False) >= 3, "no death inside the move"
        assert seen == sorted(seen), "once committed, later points are committed too"
        check_chain()
        return answer

    return run


def events(action, target):
    return AuditEvent.objects.filter(action=action, target=target, actor__isnull=False).count()


@pytest.mark.parametrize(
    ("move", "begins", "ends", "action"),
    [
        ("pause", "approved", "paused", "batch.pause"),
        ("stop", "approved", "stopped", "batch.stop"),
        ("withdraw", "proposed", "withdrawn", "plan.withdraw"),
        ("reject", "proposed", "rejected", "plan.reject"),
    ],
)
def test_a_move_of_a_redrive_and_its_event_come_together(every_point, operator, team_lead, move, begins, ends, action):
    made, proof = {}, prove(team_lead)
    who = team_lead if move == "reject" else operator

    def prepare(point):
        now = database.now_ms()
        made[point] = Plan.objects.create(
            queue="snacks", state=begins, selection="{}", as_of_ms=now, note="INC-1", requested_by=operator, digest="",
            created_at_ms=now, changed_at_ms=now, expires_at_ms=now + DAY, asked_rate_mj=1_000, rate_mj=1_000,
        ).pk  # fmt: skip
        more = {"proof": [proof.kind, proof.user_id, proof.mark]} if move == "reject" else {}
        return {"user": who.pk, "plan": made[point]} | more

    def changed(point):
        plan = Plan.objects.get(pk=made[point])
        after = plan.state == ends
        assert after or plan.state == begins
        assert events(action, f"plan:{plan.pk}") == int(after)
        return after

    assert every_point(move, prepare, changed) is True


def test_a_paused_queue_and_its_event_come_together(every_point, team_lead):
    def prepare(point):
        declare(f"q{point}")
        return {"user": team_lead.pk, "name": f"q{point}"}

    def changed(point):
        paused = Queue.objects.get(pk=f"q{point}").paused
        assert events("pause_queue", f"queue:q{point}") == int(paused)
        return paused

    assert every_point("pause_queue", prepare, changed) is True


def refused(job_id, name="snacks", key=""):
    """An order that its receiver refused: dead at token 1."""
    queue.enqueue(job_id, 1, queue=name, order_key=key)
    (lease,) = queue.claim("w", queue=name)
    assert queue.finish(job_id, lease.token, "permanent", code="http_422")


@pytest.mark.parametrize("move", ["unblock", "look"])
def test_what_is_recorded_of_an_order_and_its_event_come_together(every_point, team_lead, move):
    declare("tables", ordering="ordered")
    rows, action = {"unblock": (Unblock, "unblock"), "look": (Investigation, "investigate")}[move]

    def prepare(point):
        refused(f"n{point}", "tables", f"k{point}")
        return {"user": team_lead.pk, "job": f"n{point}"}

    def changed(point):
        found = rows.objects.filter(job_id=f"n{point}").count()
        told = AuditEvent.objects.filter(action=action, actor__isnull=False).count()
        assert told == rows.objects.count(), "a row without its event, or an event without its row"
        return bool(found)

    every_point(move, prepare, changed)


def three_leased(point):
    ids = [f"n{point}-{place}" for place in range(3)]
    queue.enqueue_many([{"id": one, "quantity": 1} for one in ids])
    found = queue.claim("w", limit=3)
    assert sorted(lease.id for lease in found) == ids
    return ids


@pytest.mark.parametrize(
    ("move", "ends"), [("finish_many", "done"), ("release_many", "pending"), ("renew_many", "leased")]
)
def test_a_move_of_many_is_all_or_nothing(every_point, move, ends):
    declare(lease_ms=600_000)

    def prepare(point):
        Job.objects.filter(state="pending").update(available_at=database.now_ms() + DAY)
        some = [[one, 1] for one in three_leased(point)]
        return {"some": [[*one, "ok"] for one in some] if move == "finish_many" else some}

    def changed(point):
        rows = Job.objects.filter(pk__startswith=f"n{point}-")
        longer = rows.filter(lease_until__gt=database.now_ms() + 700_000).count()
        n = longer if move == "renew_many" else rows.filter(state=ends).count()
        assert n in (0, 3)
        assert rows.filter(token=1).count() == 3
        return n == 3

    assert every_point(move, prepare, changed) == [True] * 3
    check_all()


def test_what_a_rate_hands_out_and_what_it_spends_come_together(every_point):
    declare(delivery_rate_mj=10)

    def prepare(point):
        Job.objects.filter(state="pending").update(available_at=database.now_ms() + DAY)
        Gate.objects.all().delete()
        queue.enqueue(f"n{point}", 1)
        return {}

    def changed(point):
        leased = Job.objects.get(pk=f"n{point}").state == "leased"
        spent = Gate.objects.filter(queue="snacks", level_uj__lt=1_000_000).exists()
        assert leased == spent
        return leased

    assert every_point("claim", prepare, changed)[0][1] == 1
