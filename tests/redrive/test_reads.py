"""What pages show of redrives: true numbers, at the same number of queries however many orders there are."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queue_app.models import Queue
from queue_app.policy.filters import Filter
from queue_app.policy.plans import UnknownPlan
from queue_app.policy.selections import by_filter, by_ids
from queue_app.policy.terms import Terms
from queue_app.reads import plans as reads
from queue_app.reads import previews, warnings
from queue_app.services import batches, freezing, life_signs, plans, ticks
from tests.dead_rows import bury
from tests.redrive.story import FAST, SNACKS, approve, approved, ask, die, frozen, run, work

pytestmark = pytest.mark.django_db
ONE_CAUSE = [("snacks", "permanent", "http_422")]


def codes(warned):
    return {one.code: one.n for one in warned}


def queries(act):
    with CaptureQueriesContext(
        connection,
    ) as captured:
        act()
    return len(captured)


# --- before -----------------------------------------------------------------------------------------------------------


def test_a_preview_tells_what_would_be_frozen_and_freezing_does_just_that(clock, operator):
    die(5)
    clock.advance(31 * 86_400_000)
    ids = die(6, first=10)
    die(4, first=20, code="http_422")
    held = ask(operator, by_ids(ids[:2]))
    seen = previews.preview(SNACKS, Terms(500, canary=3), clock.now)
    assert (seen.n.n, seen.eligible, seen.beyond_horizon, seen.held) == (15, 8, 5, {held.pk: 2})
    assert [(cause.code, cause.n) for cause in seen.causes] == [("http_503", 11), ("http_422", 4)]
    assert (seen.duration_ms, seen.ends_at_ms) == (16_000, clock.now + 16_000)
    assert seen.rows_exact
    plan = ask(operator)
    assert (plan.planned, plan.beyond_horizon, plan.held_elsewhere) == (8, 5, 2)


@pytest.mark.parametrize(
    ("selection", "n"), [(SNACKS, 3_000), (by_filter(Filter(queue="snacks", id_prefix="o1")), 1_111)]
)
def test_a_preview_of_more_than_it_looks_at_counts_by_cause(clock, operator, selection, n):
    bury(3_000, now_ms=clock.now, over_ms=3_600_000, groups=ONE_CAUSE, first=0)
    seen = previews.preview(selection, Terms(1_000, max_dead_ms=1_800_000), clock.now)
    assert seen.n.n == n
    if selection is SNACKS:
        assert [(cause.code, cause.n) for cause in seen.causes] == [("http_422", 3_000)]
        assert seen.too_old in (1_499, 1_500, 1_501)
        assert not seen.rows_exact
        assert not seen.in_request
        assert seen.eligible == 3_000 - seen.too_old


def test_the_preview_costs_the_same_queries_at_any_size(clock, operator):
    bury(2_100, now_ms=clock.now, over_ms=3_600_000, groups=ONE_CAUSE)
    few = queries(lambda: previews.preview(SNACKS, FAST, clock.now))
    bury(3_000, now_ms=clock.now, over_ms=3_600_000, groups=ONE_CAUSE, first=5_000)
    assert queries(lambda: previews.preview(SNACKS, FAST, clock.now)) == few


def test_a_preview_of_nothing_is_empty(clock, db):
    seen = previews.preview(by_ids(["nobody"]), FAST, clock.now)
    assert (seen.n.n, seen.eligible, seen.causes, seen.oldest_ms, seen.duration_ms) == (0, 0, (), None, 0)


def test_earlier_results_of_the_same_cause_are_shown(clock, operator, team_lead):
    die(4)
    run(approved(operator, team_lead), clock)
    work("permanent", code="http_503")
    (cause,) = previews.preview(SNACKS, FAST, clock.now).causes
    assert (cause.again, cause.before.dead_same) == (4, 4)
    assert codes(previews.preview(SNACKS, FAST, clock.now).warnings)["redriven_before"] == 4


# --- warnings -------------------------------------------------------------------------------------------------------


def test_warnings_name_what_is_at_stake(clock, operator):
    die(2)
    clock.advance(8 * 86_400_000)
    die(3, first=10, code="http_422")
    Queue.objects.filter(pk="snacks").update(ordering="ordered", paused=True)
    found = codes(previews.preview(SNACKS, FAST, clock.now).warnings)
    assert found == {
        "mixed": 2,
        "stale": 8 * 86_400_000,
        "ordered_queue": 5,
        "effect_possible": 2,
        "nobody_looked": 5,
        "no_trial": 5,
        "queue_paused": 0,
        "no_worker": 0,
        "no_redriver": 0,
    }


def test_living_processes_give_no_warning(clock, operator):
    die(1)
    life_signs.arrive("w1", "worker", "snacks")
    life_signs.arrive("r1", "redriver")
    assert "no_worker" not in codes(previews.preview(SNACKS, FAST, clock.now).warnings)
    assert warnings.redriver_alive(clock.now)
    clock.advance(warnings.SILENT_MS)
    assert {"no_worker", "no_redriver"} <= set(codes(previews.preview(SNACKS, FAST, clock.now).warnings))


# --- during and after -----------------------------------------------------------------------------------------------


def test_what_changed_since_the_freeze(clock, operator):
    ids = die(5)
    plan = ask(operator)
    clock.advance(1_000)
    die(3, first=10)
    die(2, first=20, code="http_500")
    from queue_app.store import jobs

    jobs.restart(ids[0], 1, max_attempts=1, deadline=clock.now + 1_000, batch=None, now_ms=clock.now)
    changes = previews.changes_since(plan.pk, clock.now)
    assert (changes.died.n, changes.gone, changes.gone_exact) == (3, 1, True)


def test_a_detail_costs_the_same_queries_at_any_size(clock, operator, team_lead):
    die(3)
    few = approved(operator, team_lead, FAST, SNACKS)
    run(few, clock)
    n = queries(lambda: reads.detail(few.pk, clock.now))
    die(300, first=100)
    many = approved(operator, team_lead, FAST, SNACKS)
    run(many, clock)
    assert queries(lambda: reads.detail(many.pk, clock.now)) == n
    assert n <= 16


def test_the_list_costs_two_queries(clock, operator):
    for k in range(5):
        die(1, first=k * 10)
        ask(operator)
    assert queries(lambda: reads.plans()) == 2
    assert [line.id for line in reads.plans(limit=2)] == sorted((line.id for line in reads.plans()), reverse=True)[:2]
    first = reads.plans()[1].id
    assert all(line.id < first for line in reads.plans(before=first))
    assert reads.plans(states=["ended"]) == []
    assert reads.plans(queue="drinks") == []


def test_an_unknown_redrive(clock, db):
    for read in (reads.detail, previews.changes_since):
        with pytest.raises(UnknownPlan):
            read(5, clock.now)


def test_who_decides_next_sees_it_waiting(clock, operator, team_lead, both_roles):
    die(1)
    mine = ask(both_roles)
    die(1, first=5)
    theirs = ask(operator)
    assert [line.id for line in reads.waiting_for(team_lead.pk, ["team_lead"])] == [mine.pk, theirs.pk]
    assert [line.id for line in reads.waiting_for(both_roles.pk, ["operator", "team_lead"])] == [theirs.pk]
    assert len(reads.waiting_for(both_roles.pk, ["team_lead"], solo=True)) == 2
    assert reads.waiting_for(operator.pk, ["operator"]) == []
    approve(team_lead, mine)
    assert [line.id for line in reads.waiting_for(team_lead.pk, ["team_lead"])] == [theirs.pk]


def test_a_batch_that_waits_for_its_turn_names_the_one_before(clock, operator, team_lead):
    ids = die(40)
    first = approved(operator, team_lead, Terms(1_000, canary=0), by_ids(ids[:20]))
    second = approved(operator, team_lead, Terms(1_000, canary=0), by_ids(ids[20:]))
    ticks.begin(first.pk)
    assert reads.detail(second.pk, clock.now).turn_after == first.pk
    assert reads.detail(first.pk, clock.now).turn_after is None


def test_the_rate_of_now_and_the_time_left(clock, operator, team_lead):
    die(100)
    plan = approved(operator, team_lead, Terms(10_000, canary=0))
    ticks.begin(plan.pk)
    for _ in range(100):
        clock.advance(50)
        ticks.tick(plan.pk)
    detail = reads.detail(plan.pk, clock.now)
    assert 9_000 <= detail.rate_seen_mj <= 11_000
    assert detail.left_ms == detail.line.waiting * 100
    batches.set_pace(operator, plan.pk, 5_000)
    assert reads.detail(plan.pk, clock.now).left_ms == detail.line.waiting * 200


def test_orders_of_a_list_are_found_by_state_and_outcome(clock, operator, team_lead):
    ids = die(6)
    plan = approved(operator, team_lead, Terms(1_000_000, canary=3))
    run(plan, clock)
    work()
    items = reads.plan_items(plan.pk)
    assert [item.job_id for item in items] == ids
    assert [item.outcome for item in items] == ["done"] * 3 + [""] * 3
    assert [item.trial for item in items] == [1, 1, 1, 0, 0, 0]
    assert len(reads.plan_items(plan.pk, states=["waiting"])) == 3
    assert len(reads.plan_items(plan.pk, outcome="done")) == 3
    assert [item.pos for item in reads.plan_items(plan.pk, after_pos=2, limit=2)] == [3, 4]
    assert reads.plan_items(plan.pk, outcome="dead_same") == []


def test_redrives_of_a_cause_are_found_where_it_appears_again(clock, operator, team_lead):
    die(2)
    first = approved(operator, team_lead)
    run(first, clock)
    die(2, first=10, code="http_422")
    ask(operator)
    assert [line.id for line in reads.of_group("snacks", "permanent", "http_503")] == [first.pk]
    assert reads.of_group("snacks", "permanent", "none") == []


def test_a_list_in_the_making_shows_how_far_it_is(clock, operator, monkeypatch):
    monkeypatch.setattr("queue_app.services.plans.IN_REQUEST", -1)
    die(20)
    plan = ask(operator)
    freezing.step(plan.pk, 5)
    detail = reads.detail(plan.pk, clock.now)
    assert (detail.line.state, detail.looked_at, detail.expected) == ("freezing", 5, 20)
    frozen(plan)
    plans.withdraw(operator, plan.pk)
    assert reads.is_final(reads.detail(plan.pk, clock.now).line.state)
