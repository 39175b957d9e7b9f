"""The gate of a queue where its table of moves says nothing: borders, costs, whole entries of the record, mistakes."""

from collections.abc import Callable

import pytest
from pytest_django import DjangoAssertNumQueries

from queue_app.models import Gate
from queue_app.policy.attempts import Result
from queue_app.policy.breakers import SILENT_MS
from queue_app.services import gates, queue
from queue_app.store import gates as gates_store
from queue_app.store import queues as store
from tests.engine.rows import T, declare, put
from tests.services.gates_of_queues import WAIT, gate, opened, told

pytestmark = pytest.mark.django_db


def ends(*told_of: tuple[str, str]) -> list[Result]:
    """Attempts that ended together, by outcome and code."""
    return [Result(f"e-{n}", 1, outcome, code) for n, (outcome, code) in enumerate(told_of)]


BUSY, GONE = ("retry", "http_503"), ("retry", "timeout_read")
CODES = [
    ((BUSY, GONE, GONE), "timeout_read"), ((GONE, BUSY, BUSY), "http_503"), ((GONE, BUSY), "timeout_read"),
    ((BUSY, GONE), "timeout_read"), ((BUSY, ("retry", "bad_order"), ("retry", "bad_order")), "http_503"),
]  # fmt: skip


@pytest.mark.parametrize(("together", "code"), CODES)
def test_the_record_names_the_code_that_most_of_the_last_failures_had(
    together: tuple[tuple[str, str], ...], code: str
) -> None:
    declare(breaker_after=1)
    gates.ended("snacks", ends(("retry", "connect_refused")), T - SILENT_MS)
    gates.ended("snacks", ends(*together), T)
    failed = 1 + sum(code != "bad_order" for _outcome, code in together)
    assert told() == [
        ("breaker.open", "queue:snacks", f'{{"code":"{code}","failed_in_row":{failed},"silent_ms":{SILENT_MS}}}')
    ]


@pytest.mark.parametrize(("ms", "open_ms"), [(0, 0), (1, 1), (-1, 0), (-3_600_000, 0)])
def test_it_was_open_for_no_less_than_no_time(ms: int, open_ms: int) -> None:
    opened()
    gates.ended("snacks", ends(("ok", "")), T + ms)
    assert told("breaker.close") == [("breaker.close", "queue:snacks", f'{{"open_ms":{open_ms}}}')]


ASKED_OF = [
    ((("ok", ""), ("permanent", "http_422"), ("retry", "http_429"), ("unknown", "bad_order")), 1, 1),
    ((("retry", "http_503"), ("ok", "")), 1, 2),  # what the rule of the queue is
    ((("retry", "http_503"),), 0, 2),  # which has none
]


@pytest.mark.parametrize(("together", "after", "queries"), ASKED_OF)
def test_what_changes_nothing_costs_a_look_or_two(
    together: tuple[tuple[str, str], ...],
    after: int,
    queries: int,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    declare(breaker_after=after)
    for one in [together, *([(each,) for each in together] if queries == 1 else [])]:
        with django_assert_num_queries(queries):
            gates.ended("snacks", ends(*one), T)
    assert not Gate.objects.exists()


def test_a_queue_that_is_not_declared_has_no_gate() -> None:
    gates.ended("nowhere", ends(BUSY), T)
    assert not Gate.objects.exists()


def test_a_rate_alone_lets_through_what_a_breaker_without_a_rule_kept() -> None:
    opened()
    store.set_limits("snacks", {"breaker_after": 0, "delivery_rate_mj": 4_000})
    assert [len(queue.claim("w1", limit=9, now_ms=T + ms)) for ms in (0, 1)] == [2, 0]
    assert gate().breaker == "open", "an end closes it"


def test_what_the_bucket_held_when_the_clock_was_set_back_may_be_spent() -> None:
    declare(delivery_rate_mj=4_000)
    put("a-1", "a-2", "a-3", at=T - 3_600_000)
    assert len(queue.claim("w1", limit=1, now_ms=T)) == 1
    assert len(queue.claim("w1", limit=9, now_ms=T - 3_600_000)) == 1
    assert (gate().level_uj, gate().level_at_ms) == (0, T - 3_600_000)


MISTAKES: list[tuple[str, Callable[[], object]]] = [
    ("spend", lambda: queue.claim("w1", now_ms=T)),
    ("spend", lambda: queue.claim("w1", now_ms=T - 3_600_000)),  # set back
    ("move", lambda: queue.claim("w1", now_ms=T + WAIT)),  # the probe
    ("move", lambda: gates.ended("snacks", ends(("ok", "")), T + 1)),
]


@pytest.mark.parametrize(("guard", "call"), MISTAKES)
def test_a_gate_that_moved_though_it_was_held_is_a_mistake_that_names_it(
    guard: str, call: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    if guard == "spend":
        declare(delivery_rate_mj=4_000)
        put("a-1", "a-2", at=T - 3_600_000)
        queue.claim("w1", now_ms=T)
    else:
        opened()
    monkeypatch.setattr(gates_store, guard, lambda *_given: False)
    with pytest.raises(RuntimeError) as mistake:
        call()
    assert str(mistake.value) == "The gate of snacks moved inside the transaction that holds it."
