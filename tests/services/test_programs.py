"""What programs write in the record, as whole events."""

from queue_app.services import programs
from queue_app.store.chain import Event


def test_an_event_of_a_redrive_and_one_of_a_queue_name_the_program_and_nobody_else() -> None:
    detail = {"n": 3, "why": "x", "ok": True, "none": None}
    assert programs.event("batch_end", 12, 77, **detail) == Event(
        77, "batch_end", "plan:12", None, "redriver", "", "", "redriver", "", detail
    )
    assert programs.queue_event("breaker.open", "snacks", 78, **detail) == Event(
        78, "breaker.open", "queue:snacks", None, "worker", "", "", "worker", "", detail
    )
    assert programs.event("x", 1, 2).detail == programs.queue_event("x", "q", 2).detail == {}
