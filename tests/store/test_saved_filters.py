"""Filters under a name: whole rows, one's own and everybody's kept apart."""

import pytest
from django.contrib.auth.models import User

from queue_app.models import SavedFilter
from queue_app.store import saved_filters
from tests.store.rows import AT

pytestmark = pytest.mark.django_db


def test_a_filter_is_kept_under_its_name_for_its_owner_and_replaced(operator: User, team_lead: User) -> None:
    oda, tom = operator.pk, team_lead.pk
    kept = [
        saved_filters.keep(name, owner=owner, made_by=by, query=query, now_ms=at_ms)
        for name, owner, by, query, at_ms in (
            ("a", oda, oda, "1", AT), ("a", None, oda, "2", AT + 1), ("a", tom, tom, "3", AT + 2),
            ("b", oda, oda, "4", AT + 3), ("a", None, tom, "5", AT + 4), ("a", oda, tom, "6", AT + 5),
        )
    ]  # fmt: skip
    own, shared, toms, b = kept[:4]
    assert kept[4:] == [shared, own]
    assert {type(number) for number in kept} == {int}
    fields = ("id", "name", "owner_id", "made_by_id", "query", "at_ms")
    assert list(SavedFilter.objects.order_by("id").values_list(*fields)) == [
        (own, "a", oda, tom, "6", AT + 5),
        (shared, "a", None, tom, "5", AT + 4),
        (toms, "a", tom, tom, "3", AT + 2),
        (b, "b", oda, oda, "4", AT + 3),
    ]
    assert [saved_filters.count(owner) for owner in (oda, None, tom, tom + 9)] == [2, 1, 1, 0]
    assert [saved_filters.find(number) for number in (own, shared, toms, b, b + 1)] == [
        ("a", oda), ("a", None), ("a", tom), ("b", oda), None,
    ]  # fmt: skip
    asked = [("a", oda), ("b", oda), ("a", None), ("b", None), ("b", tom), ("c", oda)]
    assert [saved_filters.exists(*which) for which in asked] == [True, True, True, False, False, False]
    assert [saved_filters.drop(number) for number in (own, own, b + 1)] == [True, False, False]
    assert list(SavedFilter.objects.order_by("id").values_list("id", flat=True)) == [shared, toms, b]
