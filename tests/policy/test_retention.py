"""Which delivered orders may go, in bites of what size, and the line that the archive keeps of each."""

import json

import pytest

from queue_app.policy.retention import BITE, BITE_MS, MIN_KEPT_MS, DoneJob, archive_line, done_before, next_bite

T = 1_800_000_000_000
JOB = DoneJob(
    "o1", 7, "snacks", "table 4", 3, '{"b":1.50,"a":"\u00e9"}', 2, 5, T, T + 9, 1, None
)  # a number that json would write as 1.5


def test_a_queue_gives_up_what_was_done_before_its_limit_and_one_without_a_limit_nothing() -> None:
    kept = {"snacks": 90_000, "tables": None, "hasty": MIN_KEPT_MS - 1, "just": MIN_KEPT_MS, "more": MIN_KEPT_MS + 1}
    assert done_before(kept, T) == {"snacks": T - 90_000, "hasty": T - 60_000, "just": T - 60_000, "more": T - 60_001}
    assert done_before({}, T) == {}


@pytest.mark.parametrize(
    ("size", "held_ms", "bite"),
    [
        (100, 0, 200), (100, 7, 200), (100, 8, 187), (100, 15, 100), (100, 16, 93), (100, 30, 50), (100, 60, 25),
        (100, 61, 25), (25, 10_000, 25), (249, 0, 498), (250, 0, 500), (251, 0, 500), (500, 15, 500), (13, 0, 26),
        (12, 0, 25), (1, 0, 25),
    ],
)  # fmt: skip
def test_a_bite_is_cut_to_the_time_that_it_may_hold_the_lock(size: int, held_ms: int, bite: int) -> None:
    assert next_bite(size, held_ms) == bite
    assert (BITE, BITE_MS) == ((25, 500), 15)


def test_the_archive_keeps_every_value_and_the_body_as_it_is_stored() -> None:
    assert archive_line(JOB) == (
        '{"attempts":2,"batch":null,"created_at_ms":1800000000000,"done_at_ms":1800000000009,"id":"o1",'
        '"order_key":"table 4","quantity":3,"queue":"snacks","redriven":1,"seq":7,"token":5,'
        '"payload":{"b":1.50,"a":"\u00e9"}}\n'
    )
    assert json.loads(archive_line(JOB))["payload"] == {"a": "\u00e9", "b": 1.5}
