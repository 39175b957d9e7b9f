"""kill -9 at every boundary of every move: the old state or the whole new one, never half (faults F01 to F08, F13)."""

import pytest

from queue_app.models import AuditEvent, Failure, Job, Redrive, RedriveOutcome
from queue_app.services import queue
from tests.engine.invariants import check_all
from tests.engine.mortals import KILLED, mortals, nobody_is_at_it
from tests.engine.rows import DAY, LEASE, T, declare, failures, put, row, stand, take

DUE = T + LEASE


class Mortal:
    """A process of its own for each life of a move."""

    def __init__(self, environ):
        self._mortals = mortals(environ)

    def die(self, move, point, **arguments):
        """Exit status (-9: killed) and the answer that was told."""
        status, answer = self._mortals.die("tests.engine.mortal", move, point, arguments, inside=True)
        if status == KILLED:
            nobody_is_at_it()
        return status, answer

    def every_point(self, move, prepare, judge, **arguments):
        """Run the move with a death at point 1, 2, ... until it lives; `judge` says "before" or "after" each time.

        A job of its own for each life: `prepare` and `judge` take its id, and so does the move, unless it takes none.
        """
        seen, answer = [], None
        for point in range(1, 400):
            job_id = f"n{point}"
            more = prepare(job_id) or {}
            status, answer = self.die(move, point, **{**arguments, **more})
            seen.append(judge(job_id))
            if status == 0:
                break
        assert seen[-1] == "after"
        assert seen[-2] == "after", "the death after the commit, before the answer"
        assert seen.count("before") >= 3, "no death inside the move"
        assert seen == sorted(seen, reverse=True), "once committed, later points are committed too"
        check_all(Job.objects.values_list("id", flat=True))
        return answer


@pytest.fixture
def mortal(real_database):
    return Mortal(real_database.environ)


def drained():
    """Faults off: everything that is left can be handed out and ends."""
    for _ in range(5):
        for lease in queue.claim("w9", limit=1_000, now_ms=T + 2 * DAY):
            assert queue.finish(lease.id, lease.token, "ok", now_ms=T + 2 * DAY)
    assert not Job.objects.filter(state__in=["pending", "leased"]).exists()
    check_all()


def started(job_id, **more):
    put(job_id, **more)
    assert take("w1").id == job_id


def test_enqueue_is_absent_or_once_and_a_repeat_never_contradicts_itself(mortal):
    def judge(job_id):
        there = Job.objects.filter(pk=job_id).exists()
        again = queue.enqueue(job_id, 7, payload={"item": "chips"}, now_ms=T)
        assert again == ("duplicate" if there else "accepted")
        assert (stand(job_id), row(job_id)["quantity"]) == (("pending", "", "", 0, 0), 7)
        return "after" if there else "before"

    answer = mortal.every_point(
        "enqueue", lambda job_id: {"id": job_id}, judge, quantity=7, payload={"item": "chips"}, now_ms=T
    )
    assert answer == "accepted"
    assert Job.objects.values("seq").distinct().count() == Job.objects.count()
    drained()


def test_a_batch_is_in_whole_or_not_at_all(mortal):
    def orders(job_id):
        return {"orders": [{"id": f"{job_id}-{place}", "quantity": 1} for place in range(3)]}

    def judge(job_id):
        there = Job.objects.filter(pk__startswith=f"{job_id}-").count()
        assert there in (0, 3)
        assert set(queue.enqueue_many(orders(job_id)["orders"], now_ms=T)) == {"duplicate" if there else "accepted"}
        return "after" if there else "before"

    assert mortal.every_point("enqueue_many", orders, judge, now_ms=T) == ["accepted"] * 3
    drained()


def test_claim_spends_attempt_and_token_together_or_neither(mortal):
    def judge(job_id):
        after = stand(job_id) == ("leased", "", "", 1, 1)
        assert after or (stand(job_id) == ("pending", "", "", 0, 0) and row(job_id)["owner"] is None)
        lease = take("w2", at=DUE)
        assert (lease.id, lease.token) == (job_id, 2 if after else 1)
        assert queue.finish(job_id, lease.token, "ok", now_ms=DUE)
        return "after" if after else "before"

    assert mortal.every_point("claim", lambda job_id: put(job_id), judge, owner="w1", now_ms=T)[0][1] == 1
    drained()


def test_a_takeover_and_its_failure_row_come_together(mortal):
    def judge(job_id):
        after = stand(job_id) == ("leased", "", "", 2, 2)
        assert after or stand(job_id) == ("leased", "", "", 1, 1)
        assert len(failures(job_id)) == int(after)
        assert queue.finish(job_id, 2 if after else 1, "ok", now_ms=DUE)
        return "after" if after else "before"

    mortal.every_point("claim", started, judge, owner="w2", now_ms=DUE)


@pytest.mark.parametrize(
    ("outcome", "state", "rows"), [("ok", "done", 0), ("retry", "pending", 1), ("permanent", "dead", 1)]
)
def test_finish_is_whole_or_not_at_all_and_a_repeat_says_which(mortal, outcome, state, rows):
    declare(breaker_after=0)  # so many failures in a row would open it

    def judge(job_id):
        after = row(job_id)["state"] == state
        assert after or stand(job_id) == ("leased", "", "", 1, 1)
        assert len(failures(job_id)) == (rows if after else 0)
        assert queue.finish(job_id, 1, outcome, code="http_422", now_ms=T) is not after
        assert (row(job_id)["state"], len(failures(job_id))) == (state, rows)
        return "after" if after else "before"

    def prepare(job_id):
        # a retried job of an earlier life must not be due when the next is claimed
        Job.objects.filter(state="pending").update(available_at=T + DAY)
        started(job_id)
        return {"id": job_id}

    assert mortal.every_point("finish", prepare, judge, token=1, outcome=outcome, code="http_422", now_ms=T) is True


@pytest.mark.parametrize("outcome", ["ok", "permanent"])
def test_the_end_of_a_redriven_job_comes_with_its_outcome(mortal, team_lead, outcome):
    def prepare(job_id):
        started(job_id)
        queue.finish(job_id, 1, "permanent", now_ms=T)
        queue.redrive(job_id, "INC-1", approved_by=team_lead, now_ms=T)
        assert take("w1").token == 2
        return {"id": job_id}

    def judge(job_id):
        after = row(job_id)["state"] != "leased"
        assert RedriveOutcome.objects.filter(job_id=job_id).count() == int(after)
        assert queue.finish(job_id, 2, outcome, now_ms=T) is not after
        return "after" if after else "before"

    mortal.every_point("finish", prepare, judge, token=2, outcome=outcome, now_ms=T)


def test_ending_and_taking_on_are_one(mortal):
    def prepare(job_id):
        started(f"{job_id}-now")
        put(f"{job_id}-next")
        return {"results": [[f"{job_id}-now", 1, "ok"]]}

    def judge(job_id):
        pair = (row(f"{job_id}-now")["state"], row(f"{job_id}-next")["state"])
        assert pair in {("leased", "pending"), ("done", "leased")}
        if pair[0] == "leased":
            assert queue.finish(f"{job_id}-now", 1, "ok", now_ms=T)
            take()
        assert queue.finish(f"{job_id}-next", 1, "ok", now_ms=T)
        return "after" if pair[0] == "done" else "before"

    assert mortal.every_point("finish_and_claim", prepare, judge, owner="w1", now_ms=T) == [True]


def test_redrive_is_dead_without_a_row_or_pending_with_row_and_event(mortal, team_lead):
    def prepare(job_id):
        started(job_id)
        queue.finish(job_id, 1, "permanent", code="http_422", now_ms=T)
        return {"id": job_id}

    def judge(job_id):
        after = stand(job_id) == ("pending", "", "", 0, 1)
        assert after or stand(job_id) == ("dead", "permanent", "http_422", 1, 1)
        assert Redrive.objects.filter(job_id=job_id, token=1).count() == int(after)
        assert AuditEvent.objects.filter(target=f"job:{job_id}").count() == int(after)
        check_all([job_id])
        if not after:
            queue.redrive(job_id, "INC-1", approved_by=team_lead, now_ms=T)
        lease = take("w2")
        assert (lease.id, lease.token, lease.attempt) == (job_id, 2, 1)
        assert queue.finish(job_id, 2, "ok", now_ms=T)
        return "after" if after else "before"

    mortal.every_point("redrive", prepare, judge, note="INC-1", approved_by=team_lead.pk, now_ms=T)


def test_renew_leaves_the_lease_as_it_was_or_longer_under_the_same_token(mortal):
    def judge(job_id):
        assert stand(job_id) == ("leased", "", "", 1, 1)
        until = row(job_id)["lease_until"]
        assert until in (T + LEASE, T + 5_000 + LEASE)
        assert queue.finish(job_id, 1, "ok", now_ms=T)
        return "after" if until > T + LEASE else "before"

    def prepare(job_id):
        started(job_id)
        return {"id": job_id}

    assert mortal.every_point("renew", prepare, judge, token=1, now_ms=T + 5_000) is True


def test_release_gives_the_attempt_back_with_the_job_or_not_at_all(mortal):
    def judge(job_id):
        after = stand(job_id) == ("pending", "", "", 0, 1)
        assert after or stand(job_id) == ("leased", "", "", 1, 1)
        token = take("w2").token if after else 1
        assert queue.finish(job_id, token, "ok", now_ms=T)
        return "after" if after else "before"

    def prepare(job_id):
        started(job_id)
        return {"id": job_id}

    assert mortal.every_point("release", prepare, judge, token=1, now_ms=T) is True


def test_an_unknown_answer_is_written_whole_or_not_at_all(mortal):
    def judge(job_id):
        after = bool(failures(job_id))
        assert stand(job_id) == ("leased", "", "", 1, 1)
        assert queue.finish(job_id, 1, "ok", now_ms=T)
        return "after" if after else "before"

    def prepare(job_id):
        started(job_id)
        return {"id": job_id}

    assert mortal.every_point("record_unknown", prepare, judge, token=1, code="bad_ack", now_ms=T) is True


@pytest.mark.parametrize("kind", ["exhausted", "deadline"])
def test_a_burial_and_its_failure_row_come_together(mortal, kind):
    def prepare(job_id):
        if kind == "exhausted":
            started(job_id, max_attempts=1)
        else:
            put(job_id, deadline_ms=T + 1)

    def judge(job_id):
        after = row(job_id)["state"] == "dead"
        assert len(failures(job_id)) == int(after)
        assert queue.claim("w3", now_ms=DUE) == []
        assert (row(job_id)["reason"], len(failures(job_id))) == (kind, 1)
        assert row(job_id)["token"] == (2 if kind == "exhausted" else 1)
        return "after" if after else "before"

    mortal.every_point("claim", prepare, judge, owner="w2", now_ms=DUE)
    assert Failure.objects.count() == Job.objects.count()
