"""What came of the redriven orders of a batch: for the trial, the breaker, and the seal.

The first end after each redrive counts. Services ask inside their transaction.
"""

from django.db import connection


def trial_numbers(plan_id: int, round_: int) -> tuple[int, int, int, int]:
    """(sent, left, done, died) of the trial of this round, by the first end after each redrive."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(CASE WHEN i.state = 'redriven' THEN 1 ELSE 0 END), 0), "
            "coalesce(sum(CASE WHEN i.state = 'waiting' THEN 1 ELSE 0 END), 0), "
            "coalesce(sum(CASE WHEN o.outcome = 'done' THEN 1 ELSE 0 END), 0), "
            "coalesce(sum(CASE WHEN o.outcome <> 'done' THEN 1 ELSE 0 END), 0) "
            "FROM plan_items AS i LEFT JOIN redrive_outcomes AS o ON o.job_id = i.job_id AND o.token = i.token "
            "AND o.batch = i.plan_id AND i.state = 'redriven' "
            "WHERE i.plan_id = %s AND i.canary = %s AND i.canary > 0",
            [plan_id, round_],
        )
        sent, left, done, died = cursor.fetchone()
    return int(sent), int(left), int(done), int(died)


def deaths_among_last(plan_id: int, after_outcome: int, since_ms: int, window: int) -> int:
    """Deaths among the last `window` outcomes of orders that were redriven since the round began."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(CASE WHEN last.outcome <> 'done' THEN 1 ELSE 0 END), 0) FROM ("
            "SELECT o.outcome FROM redrive_outcomes AS o JOIN redrives AS r ON r.job_id = o.job_id AND r.token = o.token "
            "WHERE o.batch = %s AND o.id > %s AND r.at_ms >= %s ORDER BY o.id DESC LIMIT %s) AS last",
            [plan_id, after_outcome, since_ms, window],
        )
        return int(cursor.fetchone()[0])


def all_of(plan_id: int, after_pos: int, limit: int) -> list[tuple[int, str, int, str]]:
    """(position, job, token, outcome) in order: done, dead_same, dead_other, waiting, left, or skipped:why."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT i.pos, i.job_id, i.token, CASE WHEN i.state = 'skipped' THEN 'skipped:' || i.why "
            "WHEN i.state = 'waiting' THEN 'left' ELSE coalesce(o.outcome, 'waiting') END FROM plan_items AS i "
            "LEFT JOIN redrive_outcomes AS o ON o.job_id = i.job_id AND o.token = i.token AND o.batch = i.plan_id "
            "WHERE i.plan_id = %s AND i.pos > %s ORDER BY i.pos LIMIT %s",
            [plan_id, after_pos, limit],
        )
        return cursor.fetchall()


def awaited(plan_id: int) -> int:
    """How many redriven orders of the batch have no end yet, from the counters."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(sum(n), 0) FROM results WHERE batch = %s AND outcome = 'waiting'", [plan_id])
        return int(cursor.fetchone()[0])
