"""Counters equal a recount, whatever order of moves led there."""

from collections import Counter

import pytest
from django.contrib.auth.models import User
from django.db.models import Sum
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queue_app.models import Count, Flow, Job, Redrive, RedriveOutcome, Result
from tests.store.rows import AT, job, outcome, redrive
from tests.undone import undone

MINUTE, HOUR = 60_000, 3_600_000
ENDS = [("permanent", "http_422"), ("exhausted", "http_503"), ("deadline", "")]
FREE = {"owner": None, "lease_until": None}
MOVES = ("claim", "release", "retry", "finish", "die", "die_waiting", "redrive", "remove")


class Story:
    """Moves orders by plain updates, and keeps the deaths and redrives in a list of its own."""

    def __init__(self) -> None:
        self.now = AT
        self.deaths: list[tuple[int, str, str, str]] = []  # at, queue, reason, code
        self.exits: list[tuple[int, str, str, str]] = []

    def move(self, found: Job, move: str, end: tuple[str, str]) -> None:
        change = getattr(self, move)(found, end)
        if change:
            assert Job.objects.filter(pk=found.pk).update(changed_at_ms=self.now, **change) == 1

    def claim(self, found: Job, _end: tuple[str, str]) -> dict[str, object]:
        if found.state != "pending" or found.attempts >= found.max_attempts:
            return {}
        return {
            "state": "leased",
            "owner": "w",
            "lease_until": self.now,
            "attempts": found.attempts + 1,
            "token": found.token + 1,
        }

    def release(self, found: Job, _end: tuple[str, str]) -> dict[str, object]:
        return {"state": "pending", "attempts": found.attempts - 1, **FREE} if found.state == "leased" else {}

    def retry(self, found: Job, _end: tuple[str, str]) -> dict[str, object]:
        return {"state": "pending", **FREE} if found.state == "leased" else {}

    def finish(self, found: Job, _end: tuple[str, str]) -> dict[str, object]:
        return {"state": "done", **FREE} if found.state == "leased" else {}

    def die(self, found: Job, end: tuple[str, str], state: str = "leased") -> dict[str, object]:
        if found.state != state:
            return {}
        self.deaths.append((self.now, found.queue, *end))
        return {"state": "dead", "reason": end[0], "code": end[1], **FREE}

    def die_waiting(self, found: Job, end: tuple[str, str]) -> dict[str, object]:
        return self.die(found, end, "pending")

    def redrive(self, found: Job, _end: tuple[str, str]) -> dict[str, object]:
        if found.state != "dead":
            return {}
        self.exits.append((self.now, found.queue, found.reason, found.code))
        return {"state": "pending", "reason": "", "code": "", "attempts": 0, "redriven": found.redriven + 1}

    def remove(self, found: Job, _end: tuple[str, str]) -> dict[str, object]:
        if found.state == "done":
            found.delete()
        return {}


def stage(found: Job) -> str:
    if found.state != "pending":
        return ""
    return "retrying" if found.attempts else "redriven" if found.redriven else "new"


def counted() -> dict[tuple[str, ...], int]:
    rows = Count.objects.values_list("queue", "state", "stage", "reason", "code").annotate(total=Sum("n"))
    return {row[:5]: row[5] for row in rows if row[5]}


def recounted() -> dict[tuple[str, ...], int]:
    return dict(Counter((j.queue, j.state, stage(j), j.reason, j.code) for j in Job.objects.all()))


def flowed(column: str, span: int) -> dict[tuple[object, ...], int]:
    rows = Flow.objects.filter(span_ms=span).values_list("start_ms", "queue", "reason", "code")
    return {row[:4]: row[4] for row in rows.annotate(total=Sum(column)) if row[4]}


def buckets(events: list[tuple[int, str, str, str]], span: int) -> dict[tuple[object, ...], int]:
    return dict(Counter((at - at % span, *rest) for at, *rest in events))


steps = st.lists(
    st.tuples(
        st.integers(0, 4), st.sampled_from(MOVES), st.sampled_from(ENDS), st.sampled_from([0, 1, 59_999, 600_000, HOUR])
    ),
    min_size=10,
    max_size=40,
)


@pytest.mark.django_db
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_counts_and_flows_equal_a_recount_after_any_moves(steps) -> None:
    with undone():
        story = Story()
        for number in range(5):
            job(f"j{number}", number, queue=("snacks", "drinks")[number % 2])
        for number, move, end, pause in steps:
            story.now += pause
            found = Job.objects.filter(pk=f"j{number}").first()
            if found:
                story.move(found, move, end)
        assert counted() == recounted()
        still = [(j.changed_at_ms, j.queue, j.reason, j.code) for j in Job.objects.filter(state="dead")]
        for span in (MINUTE, HOUR):
            assert flowed("died", span) == buckets(story.deaths, span)
            assert flowed("left_n", span) == buckets(story.exits, span)
            assert flowed("still", span) == buckets(still, span)


@pytest.mark.django_db
def test_the_story_of_the_property_reaches_every_move() -> None:
    """One order through its whole life, by hand: so that the property above is not true of nothing."""
    story = Story()
    job("j", 1)
    seen = []
    for move in ("claim", "release", "claim", "retry", "claim", "die", "redrive", "die_waiting", "redrive", "claim"):
        story.now += 1
        story.move(Job.objects.get(), move, ENDS[1])
        seen.append((Job.objects.get().state, stage(Job.objects.get())))
        assert counted() == recounted()
    assert seen == [
        ("leased", ""),
        ("pending", "new"),
        ("leased", ""),
        ("pending", "retrying"),
        ("leased", ""),
        ("dead", ""),
        ("pending", "redriven"),
        ("dead", ""),
        ("pending", "redriven"),
        ("leased", ""),
    ]
    story.move(Job.objects.get(), "finish", ENDS[0])
    story.move(Job.objects.get(), "remove", ENDS[0])
    assert counted() == recounted() == {}
    assert (len(story.deaths), len(story.exits)) == (2, 2)


@pytest.mark.parametrize(("state", "died"), [("pending", 0), ("leased", 0), ("done", 0), ("dead", 1)])
@pytest.mark.django_db
def test_an_order_inserted_in_any_state_is_counted(state: str, died: int) -> None:
    job("j", 1, state=state)
    assert counted() == recounted()
    assert sum(flowed("died", MINUTE).values()) == sum(flowed("still", HOUR).values()) == died


@pytest.mark.django_db
def test_an_update_that_moves_nothing_writes_no_counter() -> None:
    job("j", 1, state="leased")
    Count.objects.all().delete()
    Job.objects.update(lease_until=AT + 1, owner="v")
    assert not Count.objects.exists()


@pytest.mark.django_db
def test_the_last_change_into_a_place_is_kept() -> None:
    story = Story()
    job("a", 1)
    for pause in (5, 3):
        story.now += pause
        story.move(Job.objects.get(), "claim", ENDS[0])
        story.now += 1
        story.move(Job.objects.get(), "retry", ENDS[0])
    assert Count.objects.get(state="leased").last_at_ms == AT + 9
    assert Count.objects.get(stage="retrying").last_at_ms == AT + 10


@pytest.mark.django_db
def test_a_change_rolled_back_leaves_no_count() -> None:
    job("j", 1)
    with undone():
        job("k", 2, state="dead")
    assert counted() == recounted()
    assert flowed("died", MINUTE) == {}


ends = st.lists(
    st.tuples(
        st.sampled_from([None, 1, 2]),
        st.sampled_from(ENDS),
        st.sampled_from(["", *(str(choice) for choice in RedriveOutcome.Outcome.values)]),
    ),
    max_size=12,
)


@pytest.mark.django_db
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ends=ends)
def test_results_equal_a_recount_of_redrives_and_their_first_ends(ends) -> None:
    with undone():
        by = User.objects.create_user("writer")
        for link, (batch, (reason, code), end) in enumerate(ends, start=1):
            redrive(link, by, batch=batch, reason=reason, code=code)
            if end:
                outcome(link, end, batch=batch, was_reason=reason, was_code=code)
        expected = Counter((batch or 0, "snacks", *group, end or "waiting") for batch, group, end in ends)
        rows = Result.objects.values_list("batch", "queue", "reason", "code", "outcome").annotate(total=Sum("n"))
        assert {row[:5]: row[5] for row in rows if row[5]} == dict(expected)
        assert Redrive.objects.count() == len(ends)
