"""Filters under a name: one's own are free, those for all need a right and leave an event."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from queue_app.models import AuditEvent, SavedFilter
from queue_app.policy.errors import NotAllowed
from queue_app.policy.filters import Filter, FilterError
from queue_app.reads.saved_filters import named_filters
from queue_app.services.saved_filters import MAX_FILTERS, InvalidName, UnknownFilter, delete, save
from tests.conftest import Clock

OLD = Filter(queue="snacks", min_age_ms=3_600_000)
NEW = Filter(code="")


class Text(str):
    """A subclass may lie about itself, so it is no text here."""


def shown(user: User) -> list[tuple[str, bool, Filter | None]]:
    return [(named.name, named.shared, named.filter) for named in named_filters(user.pk)]


def test_ones_own_filters_are_seen_by_oneself_and_leave_no_event(clock: Clock, auditor: User, operator: User) -> None:
    save(auditor, "  夜勤  ", OLD)
    save(auditor, "夜勤", NEW)
    assert shown(auditor) == [("夜勤", False, NEW)]
    assert shown(operator) == []
    assert AuditEvent.objects.count() == 0


def test_filters_for_all_are_seen_by_all_and_recorded(clock: Clock, operator: User, team_lead: User) -> None:
    save(operator, "b", OLD)
    kept = save(operator, "a", OLD, for_all=True)
    assert save(team_lead, "a", NEW, for_all=True) == kept
    assert shown(operator) == [("b", False, OLD), ("a", True, NEW)]
    assert shown(team_lead) == [("a", True, NEW)]
    delete(operator, kept)
    assert shown(team_lead) == []
    assert list(AuditEvent.objects.values_list("action", "target", "name")) == [
        ("save_filter", f"filter:{kept}", "oda"),
        ("save_filter", f"filter:{kept}", "tom"),
        ("delete_filter", f"filter:{kept}", "oda"),
    ]


def test_an_auditor_changes_nothing_for_all(clock: Clock, operator: User, auditor: User) -> None:
    kept = save(operator, "a", OLD, for_all=True)
    with pytest.raises(NotAllowed):
        save(auditor, "a", NEW, for_all=True)
    with pytest.raises(NotAllowed):
        delete(auditor, kept)
    assert shown(auditor) == [("a", True, OLD)]
    assert AuditEvent.objects.filter(action="refused", name="ada").count() == 2


def test_anothers_filter_cannot_be_removed(clock: Clock, operator: User, auditor: User) -> None:
    kept = save(auditor, "mine", OLD)
    for unknown in (kept, 0, -1, 2**63, 2**70, kept + 99):
        with pytest.raises(UnknownFilter):
            delete(operator, unknown)
    delete(auditor, kept)
    assert SavedFilter.objects.count() == 0


def test_only_a_whole_number_names_a_filter_however_large(clock: Clock, auditor: User) -> None:
    largest = 2**63 - 1
    for number in (1, largest):
        SavedFilter.objects.create(
            pk=number, name=f"f{number}", owner=auditor, made_by=auditor, query=OLD.canonical(), at_ms=clock.now
        )
    for unknown in (True, "1", 1.0, None, "x", -1):
        with pytest.raises(UnknownFilter):
            delete(auditor, unknown)  # type: ignore[arg-type]
    for number in (largest, 1):
        delete(auditor, number)
    assert SavedFilter.objects.count() == 0


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "a\nb", "a\0", "\u202eabc", "\ud800", None, 5, Text("a")])
def test_names_that_cannot_be_kept(clock: Clock, operator: User, name: Any) -> None:
    with pytest.raises(InvalidName):
        save(operator, name, OLD)


def test_a_filter_made_by_hand_is_checked_like_any(clock: Clock, operator: User) -> None:
    with pytest.raises(FilterError):
        save(operator, "a", Filter(queue="'; --"))


def test_there_is_an_end_to_names(clock: Clock, operator: User) -> None:
    for n in range(MAX_FILTERS):
        save(operator, f"f{n}", OLD)
    with pytest.raises(InvalidName):
        save(operator, "one more", OLD)
    save(operator, "f7", NEW)


def test_what_another_version_stored_is_listed_but_not_read(clock: Clock, operator: User) -> None:
    kept = save(operator, "a", OLD)
    SavedFilter.objects.filter(pk=kept).update(query='{"colour":"red"}')
    assert shown(operator) == [("a", False, None)]
