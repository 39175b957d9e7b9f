"""An ordered queue: an earlier unfinished job of the same key blocks the later ones (DESIGN section 4)."""

import pytest

from queue_app.models import Unblock
from queue_app.services import queue
from tests.engine.invariants import check_all
from tests.engine.rows import DAY, LEASE, T, declare, put, stand, take

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _ordered():
    declare("tables", ordering="ordered", max_attempts=3)


def order(*ids, key="t4", **more):
    put(*ids, queue="tables", order_key=key, **more)


def due(at=T, limit=9):
    return [lease.id for lease in queue.claim("w1", queue="tables", limit=limit, now_ms=at)]


def test_only_the_first_of_a_key_is_handed_out():
    order("a1", "a2")
    order("b1", key="t5")
    assert due() == ["a1", "b1"]
    assert due() == []


@pytest.mark.parametrize(("outcome", "next_due"), [("ok", ["a2"]), ("permanent", []), ("retry", ["a1"])])
def test_the_next_follows_success_and_waits_for_everything_else(outcome, next_due):
    order("a1", "a2")
    assert due() == ["a1"]
    assert queue.finish("a1", 1, outcome, now_ms=T)
    assert due(T + 10_000) == next_due


def test_a_retrying_job_blocks_also_while_it_waits():
    order("a1", "a2")
    due()
    queue.finish("a1", 1, "retry", now_ms=T)
    assert due(T + 999) == []
    assert due(T + 1_000) == ["a1"]


def test_a_job_whose_lease_ran_out_blocks_until_it_has_ended():
    order("a1", "a2")
    due()
    assert due(T + LEASE) == ["a1"]
    assert queue.finish("a1", 2, "ok", now_ms=T + LEASE)
    assert due(T + LEASE) == ["a2"]


def test_a_job_buried_on_the_way_blocks_as_well():
    order("a1", deadline_ms=T + 1)
    order("a2")
    assert due(T + 1) == []
    assert stand("a1")[:2] == ("dead", "deadline")
    assert stand("a2")[0] == "pending"
    check_all()


def test_an_unblock_lets_the_later_ones_pass_one_dead_job_at_that_token_only(team_lead):
    order("a1", "a2", "a3")
    due()
    queue.finish("a1", 1, "permanent", now_ms=T)
    Unblock.objects.create(job_id="a1", token=1, at_ms=T, note="INC-1", by=team_lead)
    assert due() == ["a2"]
    queue.finish("a2", 1, "ok", now_ms=T)
    queue.redrive("a1", "INC-2", approved_by=team_lead, now_ms=T)
    assert due() == ["a1"]  # pending again: it blocks again
    queue.finish("a1", 2, "permanent", now_ms=T)
    assert due(T + DAY - 1) == []  # dead at another token than the one that was unblocked


def test_a_second_dead_job_still_blocks_behind_an_unblocked_one(team_lead):
    order("a1", "a2", "a3")
    due()
    queue.finish("a1", 1, "permanent", now_ms=T)
    Unblock.objects.create(job_id="a1", token=1, at_ms=T, note="INC-1", by=team_lead)
    due()
    queue.finish("a2", 1, "permanent", now_ms=T)
    assert due() == []


def test_jobs_without_a_key_and_jobs_of_other_queues_block_nobody():
    declare("others", ordering="ordered")
    put("free1", "free2", queue="tables")
    order("a1")
    put("x1", queue="others", order_key="t4")
    assert due() == ["free1", "free2", "a1"]
    assert take(queue="others").id == "x1"


def test_keys_differ_by_case():
    order("a1", key="T4")
    order("a2", key="t4")
    assert due() == ["a1", "a2"]


def test_in_an_independent_queue_a_key_blocks_nobody():
    put("a1", "a2", order_key="t4")
    assert [lease.id for lease in queue.claim("w1", limit=9, now_ms=T)] == ["a1", "a2"]
    queue.finish("a1", 1, "permanent", now_ms=T)
    put("a3", order_key="t4")
    assert take().id == "a3"


def test_a_hundred_burials_do_not_let_a_later_job_of_their_key_slip_by():
    order(*(f"late{number}" for number in range(120)), deadline_ms=T)
    order("good")
    order("free", key="t9")
    assert due() == ["free"]
    assert stand("good")[0] == "pending"
