"""What is frozen: exactly the selection as it was, in chunks of any size, held by one open plan."""

import pytest

from queue_app.models import AuditEvent, Hold, Job, Plan, PlanGroup, PlanItem
from queue_app.policy.filters import Filter
from queue_app.policy.plans import NothingToRedrive
from queue_app.policy.selections import EMPTY_DIGEST, by_filter, by_group, by_ids, digest_on
from queue_app.policy.terms import Terms
from queue_app.reads.dead import Count
from queue_app.services import freezing, plans, queue
from queue_app.services import plans as asking
from tests.redrive.story import FAST, SNACKS, approved, ask, die, run

pytestmark = pytest.mark.django_db
BITE = 7


def frozen(plan: Plan) -> list[tuple[int, str, int]]:
    return list(PlanItem.objects.filter(plan=plan).order_by("pos").values_list("pos", "job_id", "token"))


def freeze_by(plan: Plan, size: int) -> None:
    for _ in range(1_000):
        progress = freezing.step(plan.pk, size)
        if progress is None or progress.done:
            break
    plan.refresh_from_db()


@pytest.fixture
def slowly(monkeypatch):
    """Requests freeze nothing by themselves: every list is left to the redriver."""
    monkeypatch.setattr(asking, "IN_REQUEST", -1)


def test_a_list_is_what_was_dead_oldest_first_each_with_its_token(clock, operator):
    first = die(3)
    clock.advance(1_000)
    then = die(2, first=10)
    plan = ask(operator)
    assert plan.state == "proposed"
    assert frozen(plan) == [(pos, job_id, 1) for pos, job_id in enumerate(first + then, start=1)]
    assert plan.digest == digest_on(EMPTY_DIGEST, frozen(plan))


@pytest.mark.parametrize("n", [1, BITE - 1, BITE, BITE + 1, 2 * BITE, 3 * BITE + 2])
def test_a_list_is_whole_at_every_size_around_a_chunk(clock, operator, slowly, n):
    ids = die(n)
    plan = ask(operator)
    assert (plan.state, plan.planned) == ("freezing", 0)
    freeze_by(plan, BITE)
    assert (plan.state, plan.planned, plan.looked_at) == ("proposed", n, n)
    assert [job_id for _, job_id, _ in frozen(plan)] == ids
    assert plan.digest == digest_on(EMPTY_DIGEST, frozen(plan))
    assert sum(PlanGroup.objects.filter(plan=plan).values_list("planned", flat=True)) == n


def test_the_digest_does_not_depend_on_the_chunks(clock, operator, slowly):
    die(23)
    digests = set()
    for size in (1, 5, 23, 100):
        plan = ask(operator)
        freeze_by(plan, size)
        digests.add(plan.digest)
        plans.withdraw(operator, plan.pk)
    assert len(digests) == 1


def test_nothing_selected_makes_no_plan(clock, operator):
    with pytest.raises(NothingToRedrive):
        ask(operator)
    assert not Plan.objects.exists()


def test_what_dies_after_the_freeze_began_is_not_in_it(clock, operator, slowly):
    die(10)
    plan = ask(operator)
    freezing.step(plan.pk, 4)
    clock.advance(1)
    die(5, first=100)
    freeze_by(plan, 4)
    assert plan.planned == 10


def test_a_job_that_left_before_its_chunk_is_not_in_it(clock, operator, slowly):
    ids = die(10)
    plan = ask(operator)
    freezing.step(plan.pk, 5)
    Job.objects.filter(pk=ids[7]).update(
        state="pending", reason="", code="", attempts=0, redriven=1, available_at=clock.now
    )
    freeze_by(plan, 5)
    assert ids[7] not in {job_id for _, job_id, _ in frozen(plan)}
    assert [pos for pos, _, _ in frozen(plan)] == list(range(1, 10))


def test_the_cap_takes_the_oldest(clock, operator):
    ids = []
    for k in range(6):
        ids += die(1, first=k)
        clock.advance(1_000)
    plan = ask(operator, terms=Terms(1_000_000, cap=4, canary=0))
    assert [job_id for _, job_id, _ in frozen(plan)] == ids[:4]
    assert Hold.objects.count() == 4


def test_orders_beyond_the_horizon_or_dead_for_too_long_are_left_out_and_counted(clock, operator):
    die(2)
    clock.advance(29 * 86_400_000)
    die(3, first=10)
    clock.advance(2 * 86_400_000)
    die(4, first=20)
    plan = ask(operator, terms=Terms(1_000_000, canary=0, max_dead_ms=3_600_000))
    assert (plan.planned, plan.beyond_horizon, plan.too_old) == (4, 2, 3)


def test_an_order_held_by_another_open_plan_is_counted_and_named_not_forced(clock, operator, team_lead):
    ids = die(5)
    first = ask(operator, by_ids(ids[:2]))
    second = ask(operator)
    assert (second.planned, second.held_elsewhere, second.held_by) == (3, 2, f'{{"{first.pk}": 2}}')
    with pytest.raises(queue.Held, match=f"R-{first.pk}"):
        queue.redrive(ids[0], "INC-2", approved_by=team_lead)


def test_a_list_whose_orders_are_all_held_is_cancelled_as_empty(clock, operator):
    die(3)
    ask(operator)
    second = ask(operator)
    assert (second.state, second.why, second.held_elsewhere) == ("cancelled", "empty", 3)


def test_the_hold_of_a_closed_plan_is_taken_over(clock, operator):
    die(3)
    first = ask(operator)
    plans.withdraw(operator, first.pk)
    second = ask(operator)
    assert (second.planned, second.held_elsewhere) == (3, 0)


def test_the_cap_looks_past_held_orders(clock, operator):
    ids = die(6)
    ask(operator, by_ids(ids[:3]))
    second = ask(operator, terms=Terms(1_000_000, cap=2, canary=0))
    assert [job_id for _, job_id, _ in frozen(second)] == ids[3:5]


def test_ticked_orders_and_a_group_are_selections_too(clock, operator):
    ids = die(4) + die(2, first=10, code="http_422")
    assert ask(operator, by_ids([ids[0], ids[5], "unknown"])).planned == 2
    assert ask(operator, by_group("snacks", "permanent", "http_422")).planned == 1


def test_two_steps_at_once_take_a_chunk_once(clock, operator, slowly, monkeypatch):
    die(10)
    plan = ask(operator)
    read = freezing._read

    def overtaken(*args):
        chunk = read(*args)
        monkeypatch.setattr(freezing, "_read", read)
        assert freezing.step(plan.pk, 4) is not None  # another redriver is faster
        return chunk

    monkeypatch.setattr(freezing, "_read", overtaken)
    assert freezing.step(plan.pk, 4) is None
    plan.refresh_from_db()
    assert plan.planned == 4
    freeze_by(plan, 4)
    assert plan.planned == 10


def test_a_job_that_left_while_its_chunk_was_read_is_not_in_it(clock, operator, slowly, monkeypatch):
    ids = die(5)
    plan = ask(operator)
    read = freezing._read

    def meddling(*args):
        chunk = read(*args)
        Job.objects.filter(pk=ids[2]).update(state="pending", reason="", code="", attempts=0, redriven=1)
        return chunk

    monkeypatch.setattr(freezing, "_read", meddling)
    freeze_by(plan, 50)
    assert (plan.planned, plan.looked_at) == (4, 5)
    assert ids[2] not in {job_id for _, job_id, _ in frozen(plan)}


def test_a_cancelled_freeze_frees_its_orders_and_takes_no_more(clock, operator, slowly):
    die(10)
    plan = ask(operator)
    freezing.step(plan.pk, 4)
    assert plans.cancel(operator, plan.pk).state == "cancelled"
    assert freezing.step(plan.pk, 4) is None
    second = ask(operator)
    freeze_by(second, 50)
    assert second.planned == 10


def test_one_event_tells_what_was_frozen(clock, operator):
    die(3)
    plan = ask(operator)
    event = AuditEvent.objects.get(action="plan.frozen")
    assert plan.digest in event.detail
    assert (event.source, event.actor_id, event.target) == ("redriver", None, f"plan:{plan.pk}")


def test_a_filter_that_only_rows_can_answer_is_frozen_whole(clock, operator):
    die(30, prefix="a")
    die(30, prefix="b")
    plan = ask(operator, by_filter(Filter(queue="snacks", id_prefix="b")))
    assert plan.planned == 30


def test_what_was_redriven_before_is_counted(clock, operator, team_lead):
    die(2)
    run(approved(operator, team_lead), clock)
    for lease in queue.claim("w", limit=10):
        queue.finish(lease.id, lease.token, "permanent", code="http_503")
    die(1, first=50)
    plan = ask(operator, SNACKS, FAST)
    assert PlanGroup.objects.get(plan=plan).again == 2


def test_what_a_bounded_count_cannot_see_is_left_to_the_redriver(clock, operator, monkeypatch):
    die(3)
    monkeypatch.setattr("queue_app.services.plans.dead.count", lambda *_: Count(0, exact=False))
    plan = ask(operator)
    assert plan.state == "freezing"
    freeze_by(plan, 50)
    assert (plan.state, plan.planned) == ("proposed", 3)
