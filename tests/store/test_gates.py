"""The row of a gate: read whole, made when first held, written only as it was read."""

from dataclasses import replace
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from queue_app.models import Gate as GateRow
from queue_app.policy.breakers import Breaker
from queue_app.policy.buckets import Bucket
from queue_app.store import gates
from queue_app.store.gates import Gate
from tests.engine.rows import LEASE, T, put, take

pytestmark = pytest.mark.django_db

OPEN = Gate("snacks", Bucket(2_500_000, T), Breaker("open", 4, T + 1, T + 2, "", 0, T + 3, 5))
PROBING = Breaker("probing", 6, T + 7, T + 8, "a-1", 9, T + 10, 11)
NEW = {
    "queue": "snacks", "level_uj": 0, "level_at_ms": 0, "breaker": "closed", "failed_in_row": 0, "since_ms": 0,
    "probe_at_ms": None, "probe_job": "", "probe_token": 0, "silent_since_ms": None, "probes_failed": 0,
}  # fmt: skip


def columns(gate: Gate) -> dict[str, Any]:
    """A gate as its row holds it."""
    names = ("breaker", *list(NEW)[4:])
    values = (getattr(gate.breaker, "state" if name == "breaker" else name) for name in names)
    return {
        "queue": gate.queue,
        "level_uj": gate.bucket.level_uj,
        "level_at_ms": gate.bucket.at_ms,
        **dict(zip(names, values, strict=True)),
    }


def stored() -> dict[str, Any]:
    return GateRow.objects.values().get(queue="snacks")


def given(gate: Gate) -> None:
    GateRow.objects.create(**columns(gate))


def test_a_gate_is_read_whole_and_nothing_stands_for_one_that_is_not_there() -> None:
    assert gates.read("snacks") == Gate("snacks") == Gate("snacks", Bucket(0, 0), Breaker())
    given(replace(OPEN, breaker=PROBING))
    assert gates.read("snacks") == gates.locked("snacks") == replace(OPEN, breaker=PROBING)
    assert gates.read("drinks") == Gate("drinks")


def test_holding_makes_the_row_once(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(3):
        assert gates.locked("snacks") == Gate("snacks")
    assert stored() == NEW
    with django_assert_num_queries(1):
        assert gates.locked("snacks") == Gate("snacks")
    gates.locked("drinks")
    assert set(GateRow.objects.values_list("queue", flat=True)) == {"snacks", "drinks"}


def test_a_claim_and_an_end_write_their_own_half() -> None:
    given(OPEN)
    GateRow.objects.create(queue="drinks")
    assert gates.spend(OPEN, Bucket(7, T + 9))
    assert stored() == columns(replace(OPEN, bucket=Bucket(7, T + 9)))
    assert gates.move(OPEN, PROBING), "what was taken meanwhile does not matter to the breaker"
    assert stored() == columns(Gate("snacks", Bucket(7, T + 9), PROBING))
    assert GateRow.objects.values().get(queue="drinks") == {**NEW, "queue": "drinks"}


SPENT = ("level_uj", "level_at_ms")
MOVED = ("failed_in_row", "probe_token")


@pytest.mark.parametrize("column", [*SPENT, *MOVED, "probe_job", "breaker"])
def test_who_comes_second_writes_nothing(column: str) -> None:
    given(OPEN)
    change = {"probe_job": "b", "breaker": "closed"}.get(column, stored()[column] + 1 if column in SPENT + MOVED else 0)
    GateRow.objects.update(**{column: change})
    before = stored()
    assert gates.spend(OPEN, Bucket(7, T + 9)) is (column not in SPENT)
    assert gates.move(OPEN, PROBING) is (column in SPENT)
    assert (stored() == before) is False, "one of them is none of its business"
    GateRow.objects.all().delete()
    assert not gates.spend(OPEN, Bucket(7, T + 9))
    assert not gates.move(OPEN, PROBING)
    assert not GateRow.objects.exists()


def test_a_lease_runs_with_its_own_token_until_its_end() -> None:
    put("a-1", "a-2")
    lease = take()
    asked = [
        ("a-1", 1, T),
        ("a-1", 1, T + LEASE - 1),
        ("a-1", 1, T + LEASE),
        ("a-1", 0, T),
        ("a-1", 2, T),
        ("a-2", 0, T),
    ]
    assert (lease.id, lease.token) == ("a-1", 1)
    assert [gates.is_leased(*one) for one in asked] == [True, True, False, False, False, False]
