"""What is kept of a look and of somebody's presence: whole rows, nobody else's touched."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from queue_app.models import InvestigatedGroup, Investigation, Presence
from queue_app.store import investigations
from tests.store.rows import AT

pytestmark = pytest.mark.django_db
CAUSES = [("snacks", "permanent", "http_422"), ("drinks", "exhausted", "")]


def present() -> list[tuple[Any, ...]]:
    fields = ("user_id", "queue", "reason", "code", "seen_at_ms")
    return sorted(Presence.objects.values_list(*fields))


def test_a_look_is_kept_whole_with_the_causes_that_it_counts_for(operator: User, team_lead: User) -> None:
    given: dict[str, Any] = {
        "at_ms": AT, "by_name": "oda", "scope": "filter", "job_id": "o1", "selection": "{}", "as_of_ms": AT + 1,
        "count": 5, "note": "INC-1", "finding": "fixed", "comment": "the oven",
    }  # fmt: skip
    other = investigations.add(**given | {"by": team_lead.pk, "groups": []})
    kept = investigations.add(**given | {"by": operator.pk, "groups": iter(CAUSES)})
    assert type(kept) is int
    assert list(Investigation.objects.order_by("id").values()) == [
        {"id": other, "by_id": team_lead.pk, **given},
        {"id": kept, "by_id": operator.pk, **given},
    ]
    rows = InvestigatedGroup.objects.order_by("id").values_list("investigation_id", "queue", "reason", "code")
    assert list(rows) == [(kept, *cause) for cause in CAUSES]


def test_a_sign_of_presence_is_of_one_person_and_one_cause_and_renewed(operator: User, team_lead: User) -> None:
    for user, cause, at_ms in ((operator, 0, AT), (operator, 1, AT + 1), (team_lead, 0, AT + 2), (operator, 0, AT + 3)):
        investigations.be_present(user.pk, CAUSES[cause], at_ms)
    signs = sorted(
        [(operator.pk, *CAUSES[0], AT + 3), (operator.pk, *CAUSES[1], AT + 1), (team_lead.pk, *CAUSES[0], AT + 2)]
    )
    assert present() == signs
    for before, left in ((AT + 1, 3), (AT + 2, 2), (AT + 3, 1), (AT + 4, 0)):
        investigations.forget_presence(before)
        assert present() == [sign for sign in signs if sign[-1] >= before]
        assert len(present()) == left


def test_the_same_name_elsewhere_is_another_cause(operator: User) -> None:
    signs = [
        ("snacks", "permanent", "a"),
        ("drinks", "permanent", "a"),
        ("snacks", "exhausted", "a"),
        ("snacks", "permanent", "b"),
    ]
    for at_ms, cause in enumerate(signs, AT):
        investigations.be_present(operator.pk, cause, at_ms)
    assert present() == sorted((operator.pk, *cause, at_ms) for at_ms, cause in enumerate(signs, AT))
