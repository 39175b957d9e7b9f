"""How a redrive that is asked for is measured, and how its list is begun while the person waits."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from queue_app.models import AuditEvent, Plan
from queue_app.policy.filters import Filter
from queue_app.policy.plans import EXPIRY_MS, InvalidPlan, NothingToRedrive
from queue_app.policy.selections import Selection, by_filter, by_ids
from queue_app.policy.terms import Terms
from queue_app.reads.dead import Count
from queue_app.services import plans
from queue_app.services.freezing import Progress
from tests.conftest import Clock
from tests.redrive import story
from tests.services.told import World

NOW = 1_800_000_000_000


@dataclass
class Quarantine:
    """What the reads answer here, and what they were asked."""

    queues: list[str] = field(default_factory=lambda: ["snacks"])
    found: int = 3
    exact: bool = True
    asked: list[tuple[Any, ...]] = field(default_factory=list)

    def queues_of(self, ids: Any) -> list[str]:
        self.asked.append(("queues_of", ids))
        return self.queues

    def by_ids(self, *given: Any) -> list[None]:
        self.asked.append(("by_ids", *given))
        return [None] * self.found

    def count(self, *given: Any) -> Count:
        self.asked.append(("count", *given))
        return Count(self.found, self.exact)

    def policy_of(self, queue: str) -> object | None:
        self.asked.append(("policy_of", queue))
        return None if queue == "undeclared" else object()


@pytest.fixture
def quarantine(monkeypatch: pytest.MonkeyPatch) -> Quarantine:
    there = Quarantine()
    for name in ("selected", "dead", "queues"):
        monkeypatch.setattr(plans, name, there)
    return there


IDS = by_ids(["b", "a"])
SNACKS = by_filter(Filter(queue="snacks"))


def test_orders_by_id_are_looked_up_as_of_the_next_millisecond(quarantine: Quarantine) -> None:
    assert plans._measured(IDS, NOW) == ("snacks", 3)
    asked = [("queues_of", ("a", "b")), ("by_ids", ("a", "b"), NOW + 1, (-1, -1), 2), ("policy_of", "snacks")]
    assert quarantine.asked == asked


@pytest.mark.parametrize(
    ("found", "exact", "expected"),
    [
        (1, True, 1),
        (5_000, True, 5_000),
        (1, False, 2_001),
        (2_000, False, 2_001),
        (2_001, False, 2_001),
        (2_002, False, 2_002),
    ],
)
def test_a_filter_is_counted_and_what_is_too_many_to_count_is_left_to_the_redriver(
    quarantine: Quarantine, found: int, exact: bool, expected: int
) -> None:
    quarantine.found, quarantine.exact = found, exact
    assert plans._measured(SNACKS, NOW) == ("snacks", expected)
    assert quarantine.asked == [("count", SNACKS.filter, NOW + 1), ("policy_of", "snacks")]


SEVERAL = "The ticked orders are of several queues, and a redrive is of one."
UNDECLARED = "No queue undeclared is declared."
NOTHING = "No order in quarantine is selected."


@pytest.mark.parametrize(
    ("selection", "queues", "found", "kind", "sentence", "values"),
    [
        (IDS, ["drinks", "snacks"], 2, InvalidPlan, SEVERAL, {"field": "ids"}),
        (IDS, ["undeclared"], 2, InvalidPlan, UNDECLARED, {"field": "queue", "queue": "undeclared"}),
        (
            by_filter(Filter(queue="undeclared")),
            [],
            2,
            InvalidPlan,
            UNDECLARED,
            {"field": "queue", "queue": "undeclared"},
        ),
        (IDS, ["snacks"], 0, NothingToRedrive, NOTHING, {"field": "selection"}),
        (IDS, [], 0, NothingToRedrive, NOTHING, {"field": "selection"}),
        (SNACKS, [], 0, NothingToRedrive, NOTHING, {"field": "selection"}),
    ],
)
def test_what_cannot_be_one_redrive_is_refused_with_its_values(
    quarantine: Quarantine, selection: Selection, queues: list[str], found: int, kind: Any, sentence: str,
    values: dict[str, str],
) -> None:  # fmt: skip
    quarantine.queues, quarantine.found = queues, found
    with pytest.raises(InvalidPlan) as caught:
        plans._measured(selection, NOW)
    error = caught.value
    assert (type(error), str(error), error.values, error.field) == (kind, sentence, values, values["field"])


@pytest.mark.parametrize("key", ["k" * 15, "k" * 65, "k" * 16 + "\n", "k" * 15 + "ä", "", 5, b"k" * 16])
def test_a_damaged_form_is_refused_with_its_values(key: object) -> None:
    with pytest.raises(InvalidPlan) as caught:
        plans._check_form_key(key)
    assert (str(caught.value), caught.value.values, caught.value.field) == (
        "This form is damaged: load the page again.", {"field": "form_key"}, "form_key",
    )  # fmt: skip


@pytest.mark.parametrize("key", [None, "k" * 16, "aZ09_-" * 10 + "kkkk"])
def test_a_form_key_may_be_left_out_and_has_16_to_64_marks(key: object) -> None:
    plans._check_form_key(key)


# --- the beginning of a list --------------------------------------------------------------------------------------------


def begun(
    monkeypatch: pytest.MonkeyPatch, expected: int, *steps: tuple[int, int, bool] | None
) -> list[tuple[Any, ...]]:
    """The chunks (plan, size, instant) that are taken of 9 orders at most; each answers (looked at, size, done)."""
    taken: list[tuple[Any, ...]] = []
    answers = iter(steps)

    def step(plan_id: int, size: int, *, now_ms: int | None) -> Progress | None:
        taken.append((plan_id, size, now_ms))
        answer = next(answers)
        return answer and Progress(answer[0], 0, answer[1], answer[2], 0)

    monkeypatch.setattr(plans, "IN_REQUEST", 9)
    monkeypatch.setattr(plans, "freezing", SimpleNamespace(step=step))
    plans._begin_freezing(Plan(pk=7, expected=expected), NOW)
    return taken


@pytest.mark.parametrize(
    ("expected", "steps", "sizes"),
    [
        (10, [], []),  # the redriver makes it
        (9, [(2, 5, True)], [2]),
        (9, [None], [2]),  # somebody else is at it
        (9, [(2, 5, False), None], [2, 5]),
        (1, [(2, 5, False), (7, 3, False), (9, 4, False), (10, 6, False)], [2, 5, 3, 4]),  # more than was expected
    ],
)
def test_a_small_list_is_made_in_chunks_that_fit(
    monkeypatch: pytest.MonkeyPatch, expected: int, steps: list[tuple[int, int, bool] | None], sizes: list[int]
) -> None:
    assert begun(monkeypatch, expected, *steps) == [(7, size, NOW) for size in sizes]


@pytest.mark.django_db
def test_an_instant_that_is_given_holds_for_all_that_is_written(world: World, clock: Clock) -> None:
    story.die(2)
    at_ms = clock.now + 5
    clock.advance(60_000)
    receipt = plans.ask(world.oda, story.SNACKS, Terms(9_000), note="INC-1", now_ms=at_ms)
    plan = Plan.objects.get()
    assert (receipt.at_ms, plan.created_at_ms, plan.changed_at_ms, plan.as_of_ms) == (at_ms, at_ms, at_ms, at_ms + 1)
    assert plan.expires_at_ms == at_ms + EXPIRY_MS
    assert set(AuditEvent.objects.filter(target=f"plan:{plan.pk}").values_list("at_ms", flat=True)) == {at_ms}
