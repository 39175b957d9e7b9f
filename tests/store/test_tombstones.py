"""What stays of removed orders: one row for each, whole, in the order of their ids, and the first one stands."""

import pytest

from queue_app.models import Tombstone
from queue_app.policy.bodies import body_digest
from queue_app.policy.retention import DoneJob
from queue_app.store import tombstones
from tests.store.changed import changes
from tests.store.rows import AT, HASH


def done(job_id: str, quantity: int, at_ms: int) -> DoneJob:
    """A delivered order that goes."""
    return DoneJob(job_id, 1, "drinks", "k", quantity, '{"a":1}', 1, 1, AT - 9, at_ms, 0, None)


@pytest.mark.django_db
def test_a_removed_order_leaves_its_id_its_body_and_when() -> None:
    Tombstone.objects.create(job_id="old", body_digest=HASH, quantity=7, done_at_ms=AT, removed_at_ms=AT)
    with changes(Tombstone) as changed:
        tombstones.bury([done("b", 2, AT + 1), done("old", 3, AT + 2), done("a", 4, AT + 3)], AT + 5)
    assert changed == {
        job_id: {
            "job_id": job_id, "body_digest": body_digest("drinks", n, '{"a":1}', "k"), "quantity": n,
            "done_at_ms": at, "removed_at_ms": AT + 5,
        }
        for job_id, n, at in (("a", 4, AT + 3), ("b", 2, AT + 1))
    }  # fmt: skip


class Many:
    """Stands in for the database and keeps what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[tuple[object, ...]]]] = []

    def cursor(self) -> "Many":
        return self

    def __enter__(self) -> "Many":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def executemany(self, sql: str, rows: list[tuple[object, ...]]) -> None:
        self.asked.append((sql, rows))


def test_they_are_written_in_the_order_of_ids_so_that_two_hosts_cannot_deadlock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = Many()
    monkeypatch.setattr(tombstones, "connection", here)
    tombstones.bury([done("b", 2, AT + 1), done("a", 4, AT + 3)], AT + 5)
    assert here.asked == [
        (
            "INSERT INTO tombstones (job_id, body_digest, quantity, done_at_ms, removed_at_ms) "
            "SELECT %s, %s, %s, %s, %s WHERE NOT EXISTS (SELECT 1 FROM tombstones WHERE job_id = %s)",
            [
                ("a", body_digest("drinks", 4, '{"a":1}', "k"), 4, AT + 3, AT + 5, "a"),
                ("b", body_digest("drinks", 2, '{"a":1}', "k"), 2, AT + 1, AT + 5, "b"),
            ],
        )
    ]
