"""Letting later orders pass: one whole row for a dead job at its token, and no second one."""

import pytest
from django.contrib.auth.models import User

from queue_app.models import Unblock
from queue_app.store import unblocks
from tests.store.changed import Asked, changes
from tests.store.rows import AT, job


@pytest.mark.django_db
def test_a_dead_job_at_its_token_is_passed_once(team_lead: User) -> None:
    job("a", 1, state="dead", token=3)
    job("b", 2, state="dead", token=3)
    job("c", 3, state="leased", token=3)
    more = {"note": "INC-1", "by": team_lead.pk}
    with changes(Unblock) as changed:
        tries = [("a", 2), ("a", 4), ("c", 3), ("none", 3), ("a", 3), ("a", 3)]
        assert [unblocks.add(*one, at_ms=AT + n, **more) for n, one in enumerate(tries)] == [False] * 4 + [True, False]
    ((_, row),) = changed.items()
    del row["id"]
    assert row == {"job_id": "a", "token": 3, "at_ms": AT + 4, "note": "INC-1", "by_id": team_lead.pk}
    assert unblocks.add("b", 3, at_ms=AT, **more)
    assert [unblocks.of(*one) for one in (("a", 3), ("a", 2), ("b", 3), ("c", 3))] == [
        ("tom", AT + 4), None, ("tom", AT), None,
    ]  # fmt: skip


def test_what_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked().stand_in(monkeypatch, unblocks)
    for asked.rowcount, added in ((1, True), (0, False)):  # type: ignore[attr-defined]
        assert unblocks.add("a", 3, at_ms=AT, note="INC-1", by=5) is added
    sql = (
        "INSERT INTO unblocks (job_id, token, at_ms, note, by_id) SELECT %s, %s, %s, %s, %s "
        "WHERE EXISTS (SELECT 1 FROM jobs WHERE id = %s AND token = %s AND state = 'dead') "
        "AND NOT EXISTS (SELECT 1 FROM unblocks WHERE job_id = %s AND token = %s)"
    )
    assert asked.statements == [(sql, ["a", 3, AT, "INC-1", 5, "a", 3, "a", 3])] * 2
