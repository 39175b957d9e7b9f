"""kill -9 at every statement of every move of a person: the change and its event, or neither; then everything goes on.

A move that is added to the services must be added here: the last test compares.
"""

import ast

import pytest

from queue_app.models import Job, Plan, Queue
from queue_app.services import batches, queue, ticks
from tests.conftest import BASE_DIR
from tests.engine.invariants import check_all
from tests.engine.mortals import mortals, nobody_is_at_it
from tests.engine.rows import declare
from tests.faults.people_moves import ROOMS, begun
from tests.faults.test_promises import functions_in
from tests.redrive.invariants import check_plans
from tests.redrive.story import approve, frozen, work

MOST_POINTS = 300


def killed_at_every_point(process, case, story):
    """A death at point 1, 2, ... until one lives; each time the move and its event are there, or neither is."""
    seen = []
    for point in range(1, MOST_POINTS):
        arguments = case.ready(story)
        assert not case.stands(story), f"{case.move} does not begin before itself"
        told = story.told(case.action)
        status, _ = process.die("tests.faults.mortal", case.move, point, arguments)
        nobody_is_at_it()
        seen.append(case.stands(story))
        more = story.told(case.action) - told
        assert more == (seen[-1] and case.action != ""), f"{case.move} at point {point}: {seen[-1]}, {more} events"
        if status == 0:
            break
    assert seen[-2:] == [True, True], f"{case.move}: the death after the commit, and the life"
    assert seen.count(False) >= 3, f"{case.move}: no death inside it"
    assert seen == sorted(seen), f"{case.move}: once committed, later points are committed too"


def to_the_end(story):
    """Faults off: whatever people left is decided and carried out, and every order is delivered."""
    Queue.objects.update(accepting=True, paused=False, delivery_rate_mj=None)
    while plan := Plan.objects.filter(state__in=("freezing", "proposed", "approved", "running", "paused")).first():
        if plan.state == "freezing":
            assert frozen(plan).state == "proposed"
        elif plan.state == "proposed":
            approve(story.lead, plan)
        elif plan.state == "paused":
            batches.resume(story.operator, plan.pk)
        elif plan.state == "approved":
            assert ticks.begin(plan.pk)
        else:
            ticks.tick(plan.pk, unlimited=True)
    work()
    assert not Job.objects.filter(state__in=("pending", "leased")).exists()
    check_plans()
    check_all(Job.objects.values_list("id", flat=True))
    assert queue.enqueue("afterwards", 1) == "accepted"
    assert work() == 1


@pytest.mark.parametrize("room", ROOMS)
def test_a_persons_move_and_its_event_come_together_and_all_goes_on(real_database, operator, team_lead, room):
    declare("tables", ordering="ordered")
    story = begun(operator, team_lead)
    process = mortals(real_database.environ)
    for case in ROOMS[room]:
        killed_at_every_point(process, case, story)
    to_the_end(story)


# --- no move is left out --------------------------------------------------------------------------------------------

ENGINE, REDRIVE, MANY = "tests/engine/test_kills.py", "tests/redrive/test_kills.py", "tests/faults/test_kills.py"
BITES = ("tests/growth/test_housekeeping_kills.py", "test_a_bite_that_dies_anywhere_lost_nothing_and_the_next_goes_on")
ENDS = (ENGINE, "test_finish_is_whole_or_not_at_all_and_a_repeat_says_which")
# services that no person calls: the test that kills them, or why a death in them leaves nothing behind
KILLED_ELSEWHERE = {
    "acceptance._accept": (ENGINE, "test_a_batch_is_in_whole_or_not_at_all"),
    "leases.finish_state": ENDS,
    "leases.claim": (ENGINE, "test_claim_spends_attempt_and_token_together_or_neither"),
    "leases.finish_many": (MANY, "test_a_move_of_many_is_all_or_nothing"),
    "leases.finish_and_claim": (ENGINE, "test_ending_and_taking_on_are_one"),
    "leases.renew_many": (MANY, "test_a_move_of_many_is_all_or_nothing"),
    "leases.release_many": (MANY, "test_a_move_of_many_is_all_or_nothing"),
    "leases.record_unknown": (ENGINE, "test_an_unknown_answer_is_written_whole_or_not_at_all"),
    "redrives.redrive": (ENGINE, "test_redrive_is_dead_without_a_row_or_pending_with_row_and_event"),
    "plans.write": (REDRIVE, "test_asking_leaves_no_plan_or_one_and_the_same_form_again_gives_it"),
    "approvals._decide": (REDRIVE, "test_approving_leaves_the_plan_proposed_or_wholly_approved"),
    "freezing.step": (REDRIVE, "test_freezing_goes_on_where_it_was"),
    "ticks.begin": (REDRIVE, "test_approving_leaves_the_plan_proposed_or_wholly_approved"),
    "ticks.tick": (REDRIVE, "test_a_tick_is_whole_or_never_was"),
    "sealing.seal": (REDRIVE, "test_the_seal_is_whole_or_never_was"),
    "housekeeping.remove_bite": BITES,
}
ONE_ROW = "a sign of life, a presence, a session or a counter's fold: one row or one event, nothing else goes with it"
WHOLE = "a copy into a new place, which is proved before it counts, or a lock while one is read"
NOT_KILLED = {
    "asking.let_run_out": ONE_ROW,
    "backups._record": ONE_ROW,
    "housekeeping._done": ONE_ROW,
    "housekeeping._my_turn": ONE_ROW,
    "life_signs.arrive": ONE_ROW,
    "life_signs.beat": ONE_ROW,
    "life_signs.leave": ONE_ROW,
    "looks.seen": ONE_ROW,
    "people.record_refusal": ONE_ROW,
    "session_limits.prolong": ONE_ROW,
    "sessions._record": ONE_ROW,
    "moving._locked_source": WHOLE,
}


def writers():
    """Every function of the services that opens a transaction of its own, as `module.function`."""
    found = set()
    for path in (BASE_DIR / "queue_app" / "services").glob("*.py"):
        _search(ast.parse(path.read_text(encoding="utf-8")), f"{path.stem}.", path.stem, found)
    return found


def _search(node, name, module, found):
    for child in ast.iter_child_nodes(node):
        inner = f"{module}.{child.name}" if isinstance(child, ast.FunctionDef) else name
        if isinstance(child, ast.With) and any("database.write(" in ast.unparse(item) for item in child.items):
            found.add(inner)
        _search(child, inner, module, found)


def test_no_service_that_writes_is_left_out():
    here = {case.service for cases in ROOMS.values() for case in cases}
    assert sorted(here | set(KILLED_ELSEWHERE) | set(NOT_KILLED)) == sorted(writers())
    for path, name in KILLED_ELSEWHERE.values():
        assert name in functions_in(BASE_DIR / path), f"{path}::{name}"
