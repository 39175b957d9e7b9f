"""Rows of every kind that the counters count, and what a count of them must say: the tests of recounting stand on it."""

from django.contrib.auth.models import User

from queue_app.models import Count, Failure, Flow, LateFinish, Plan, PlanItem, Result, Tally
from queue_app.policy.recounting import Group, Numbers, Place
from queue_app.policy.windows import DAY_MS, HOUR_MS, MINUTE_MS
from tests.conftest import START_MS
from tests.store.rows import job, outcome, redrive

T = START_MS  # a whole hour, 08:00 UTC
KEPT = T - HOUR_MS  # minutes are compared from here
REFUSED: Group = ("snacks", "permanent", "http_422")
TRIED: Group = ("snacks", "exhausted", "http_503")
LATE: Group = ("drinks", "deadline", "")
NOTHING = Numbers()


def no_wait(_seconds: float) -> None:
    """Nobody else is there."""


def flows(**columns: list[tuple[int, Group, int]]) -> dict[str, dict[Place, int]]:
    """Flows as they are compared, from (instant, group, how many): the hour's and the minute's."""
    found: dict[str, dict[Place, int]] = {name: {} for name in NOTHING.flows}
    for column, parts in columns.items():
        for at_ms, group, n in parts:
            for span in (HOUR_MS, MINUTE_MS) if at_ms >= KEPT else (HOUR_MS,):
                place = (span, at_ms - at_ms % span, *group)
                found[column][place] = found[column].get(place, 0) + n
    return found


def said(numbers: Numbers) -> dict[str, object]:
    """Everything that they say, without zeros, to be compared as a whole."""
    without = {
        name: {place: n for place, n in counter.items() if n}
        for name, counter in [*numbers.n.items(), *numbers.flows.items()]
    }
    return {**without, "last": numbers.last, "uncertain": numbers.uncertain}


def place(queue: str, state: str, stage: str = "", reason: str = "", code: str = "") -> Place:
    """Of the counters of orders."""
    return (queue, state, stage, reason, code)


def forget_counters() -> None:
    """What the database counted of the rows so far; a test of the stored side writes its own."""
    for model in (Count, Flow, Result, Tally):
        model.objects.all().delete()


def flow(span: int, start_ms: int, group: Group = REFUSED, slot: int = 0, **columns: int) -> None:
    """Write a counter of a group."""
    queue, reason, code = group
    Flow.objects.create(span_ms=span, start_ms=start_ms, queue=queue, reason=reason, code=code, slot=slot, **columns)


# --- the rows ------------------------------------------------------------------------------------------------------
def orders() -> None:
    """Eleven orders of two queues in every state and stage, also numbered below zero."""
    rows: list[tuple[int, dict[str, object]]] = [
        (-900, {"state": "done", "changed_at_ms": T + 1}),
        (-1, {"state": "done", "changed_at_ms": T + 9}),
        (0, {"state": "done", "changed_at_ms": T + 4}),
        (1, {"queue": "drinks", "state": "done", "changed_at_ms": T + 2}),
        (2, {"changed_at_ms": T + 3}),
        (3, {"attempts": 1, "redriven": 1, "token": 1, "changed_at_ms": T + 5}),
        (4, {"redriven": 1, "token": 1, "changed_at_ms": T + 6}),
        (5, {"queue": "drinks", "redriven": 2, "token": 1, "changed_at_ms": T + 7}),
        (6, {"state": "leased", "redriven": 1, "changed_at_ms": T + 8}),
        (7, {"queue": "drinks", "attempts": 2, "token": 2, "changed_at_ms": T + 8}),
        (8, {"queue": "drinks", "changed_at_ms": T + 8}),
        (9, {"changed_at_ms": T + 1}),
    ]
    for seq, columns in rows:
        job(f"o{seq}", seq, **columns)


def deaths() -> None:
    """Dead orders of three groups: before minutes are kept, at the border, and in two later hours."""
    dead = [
        (REFUSED, KEPT - DAY_MS - 1), (REFUSED, KEPT - 1), (REFUSED, KEPT), (REFUSED, T), (REFUSED, T + MINUTE_MS - 1),
        (TRIED, T + MINUTE_MS), (TRIED, T + HOUR_MS), (LATE, T - 1), (LATE, T + 2 * HOUR_MS),
    ]  # fmt: skip
    for seq, ((queue, reason, code), at_ms) in enumerate(dead, start=100):
        job(f"d{seq}", seq, state="dead", queue=queue, reason=reason, code=code, changed_at_ms=at_ms)


def failure(job_id: str, token: int, at_ms: int, what: str = "permanent") -> None:
    """Write an attempt that failed."""
    Failure.objects.create(job_id=job_id, token=token, attempt=1, at_ms=at_ms, outcome=what)


def of(group: Group) -> dict[str, str]:
    """The columns of a group."""
    return dict(zip(("queue", "reason", "code"), group, strict=True))


def frozen(plan_id: int, pos: int, job_id: str, token: int, at_ms: int) -> None:
    """Put an order on the list of a redrive."""
    if not Plan.objects.filter(pk=plan_id).exists():
        Plan.objects.create(
            pk=plan_id, queue="snacks", state="freezing", selection="{}", as_of_ms=T, note="n", created_at_ms=T,
            changed_at_ms=T, expires_at_ms=T, asked_rate_mj=1, rate_mj=1,
        )  # fmt: skip
    PlanItem.objects.create(plan_id=plan_id, pos=pos, job_id=job_id, token=token, dead_since_ms=at_ms)


def redrives(by: User) -> None:
    """Six: a list tells when it had died, another's tells nothing, failures do, one tells too early, nobody does."""
    frozen(7, 1, "j1", 1, T - HOUR_MS)  # before its failure: buried then
    failure("j1", 1, T - 2 * HOUR_MS, "unknown")
    redrive(1, by, id=-900, batch=7, at_ms=T + 1, **of(REFUSED))
    frozen(7, 2, "j2", 2, T - 5 * HOUR_MS)  # of another token,
    frozen(8, 1, "j2", 1, T - 6 * HOUR_MS)  # of another list,
    frozen(7, 3, "j9", 1, T - 7 * HOUR_MS)  # of another order
    failure("j2", 0, T - 4 * HOUR_MS)
    failure("j2", 1, T - 3 * HOUR_MS)
    failure("j2", 2, T - 2 * HOUR_MS)  # died again afterwards
    redrive(2, by, id=-1, batch=7, at_ms=T + 2, **of(REFUSED))
    failure("j3", 2, T + MINUTE_MS, "retry")
    redrive(3, by, id=1, token=3, at_ms=T + HOUR_MS, **of(TRIED))
    failure("j4", 3, T - DAY_MS, "unknown")
    redrive(4, by, id=2, token=4, at_ms=T + 1, **of(LATE))
    redrive(5, by, id=5, batch=8, at_ms=T - 1, **of(("drinks", "permanent", "x")))
    failure("j6", 2, T + 2, "lease_expired")
    redrive(6, by, id=900, token=2, batch=8, at_ms=T + 3, **of(TRIED))


def outcomes() -> None:
    """First ends of five redrives: of two batches, and without one."""
    kinds = [(7, REFUSED, "done"), (7, REFUSED, "dead_same"), (None, TRIED, "done"), (None, TRIED, "done")]
    kinds.append((8, ("drinks", "permanent", "x"), "dead_other"))
    for n, (batch, (queue, reason, code), what) in enumerate(kinds):
        number = (-900, -1, 1, 2, 900)[n]
        columns = {"id": number, "batch": batch, "queue": queue, "was_reason": reason, "was_code": code}
        outcome(10 + n, what, job_id=f"e{n}", **columns)


STANDING = {
    place("snacks", "done"): (3, T + 9),
    place("drinks", "done"): (1, T + 2),
    place("snacks", "pending", "new"): (2, T + 3),
    place("snacks", "pending", "retrying"): (1, T + 5),
    place("snacks", "pending", "redriven"): (1, T + 6),
    place("drinks", "pending", "new"): (1, T + 8),
    place("drinks", "pending", "retrying"): (1, T + 8),
    place("drinks", "pending", "redriven"): (1, T + 7),
    place("snacks", "leased"): (1, T + 8),
    place("snacks", "dead", "", "permanent", "http_422"): (5, T + MINUTE_MS - 1),
    place("snacks", "dead", "", "exhausted", "http_503"): (2, T + HOUR_MS),
    place("drinks", "dead", "", "deadline", ""): (2, T + 2 * HOUR_MS),
}
ENDED = {
    (7, *REFUSED, "done"): 1,
    (7, *REFUSED, "dead_same"): 1,
    (8, *TRIED, "waiting"): 1,
    (8, "drinks", "permanent", "x", "dead_other"): 1,
    (0, *LATE, "waiting"): 1,
    (0, *TRIED, "done"): 2,
    (0, *TRIED, "waiting"): -1,  # more ends than redrives: it would be told
}
STILL = [
    (KEPT - DAY_MS - 1, REFUSED, 1), (KEPT - 1, REFUSED, 1), (KEPT, REFUSED, 1), (T, REFUSED, 2),
    (T + MINUTE_MS, TRIED, 1), (T + HOUR_MS, TRIED, 1), (T - 1, LATE, 1), (T + 2 * HOUR_MS, LATE, 1),
]  # fmt: skip
LEFT = [
    (T + 1, REFUSED, 2), (T + HOUR_MS, TRIED, 1), (T + 1, LATE, 1), (T - 1, ("drinks", "permanent", "x"), 1),
    (T + 3, TRIED, 1),
]  # fmt: skip
LEFT_DIED = [
    (T - HOUR_MS, REFUSED, 1), (T - 3 * HOUR_MS, REFUSED, 1), (T + MINUTE_MS, TRIED, 1), (T - DAY_MS, LATE, 1),
    (T - 1, ("drinks", "permanent", "x"), 1), (T + 2, TRIED, 1),
]  # fmt: skip
COUNTED = {
    "counts": {where: n for where, (n, _last) in STANDING.items()},
    "results": ENDED,
    "tallies": {("late_finish",): 2},
    "last": {where: last for where, (_n, last) in STANDING.items()},
    "uncertain": {LATE, ("drinks", "permanent", "x")},
    **flows(died=[*STILL, *LEFT_DIED], left_n=LEFT, still=STILL),
}


def everything(by: User) -> None:
    """All of it, and two late finishes."""
    orders()
    deaths()
    redrives(by)
    outcomes()
    for n in range(2):
        LateFinish.objects.create(job_id=f"l{n}", token=1, at_ms=T, outcome="ok")
