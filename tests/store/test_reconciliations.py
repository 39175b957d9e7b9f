"""A comparison is kept as one row, every column as it was given."""

import pytest
from django.contrib.auth.models import User

from queue_app.models import Reconciliation
from queue_app.store import reconciliations
from tests.conftest import START_MS as T


@pytest.mark.parametrize("by_a_person", [True, False])
def test_every_column_is_kept_and_the_number_is_told(by_a_person: bool, operator: User) -> None:
    number = reconciliations.insert(
        started_at_ms=T,
        ended_at_ms=T + 5,
        actor=operator.pk if by_a_person else None,
        source="cli",
        compared=7,
        differing=3,
        numbers={"kinds": {"unknown_here": 2, "no_effect": 1}, "here": {"done": 4}},
        examples=[["no_effect", "b"], ["unknown_here", "a"]],
    )
    assert type(number) is int
    assert [*Reconciliation.objects.values()] == [
        {
            "id": number,
            "started_at_ms": T,
            "ended_at_ms": T + 5,
            "actor_id": operator.pk if by_a_person else None,
            "source": "cli",
            "compared": 7,
            "differing": 3,
            "numbers": '{"here":{"done":4},"kinds":{"no_effect":1,"unknown_here":2}}',
            "examples": '[["no_effect","b"],["unknown_here","a"]]',
        }
    ]
