"""Tokens, claims and ends, and what counts as success."""

from tests.planted.mistake import Mistake

CLAIM = "tests/engine/test_claim.py::test_"
BURY = "tests/engine/test_burials.py::test_"
FINISH = "tests/engine/test_finish.py::test_"
RUN = "tests/engine/test_run_once.py::test_"
KILLS = "tests/engine/test_kills.py::test_"
BARRIERS = "tests/engine/test_barriers.py::test_"
ANSWERS = "tests/policy/test_answers.py::test_"
LOSERS = "tests/engine/test_losers.py::test_"
JOBS = "queue_app/store/jobs.py"
RUNS = "queue_app/services/runs.py"
ATTEMPTS = "queue_app/policy/attempts.py"
ENDS = "queue_app/store/ends.py"
HANDING = "queue_app/services/handing_out.py"
ENDING = "queue_app/services/ending.py"

MISTAKES = (
    # --- tokens and ends
    Mistake(
        "finish without token check",
        ENDS, 'self.state == "leased" and self.token == token', 'self.state == "leased"',
        (
            f"{FINISH}another_token_ends_nothing",
            f"{BARRIERS}claim_and_finish_either_the_late_answer_counts_or_the_taker_owns_it",
        ),
    ),
    Mistake(
        "the guard of the database forgets the token",
        ENDS, "AND jobs.state = 'leased' AND jobs.token = g.token", "AND jobs.state = 'leased'",
        (f"{LOSERS}of_many_ends_only_the_one_that_moved_is_refused",),
    ),
    Mistake(
        "the guard of a claim forgets the token",
        JOBS, "AND jobs.state = g.state AND jobs.token = g.token", "AND jobs.state = g.state",
        (f"{LOSERS}of_many_due_jobs_only_the_one_that_moved_is_not_handed_out",),
    ),
    Mistake(
        "an answer after the lease's end is thrown away though nobody took over",
        ENDS, "{_OWNED} RETURNING jobs.id\",\n        [*values, now_ms, *given.values(rows)],",
        "{_OWNED} AND jobs.lease_until > %s RETURNING jobs.id\",\n        [*values, now_ms, *given.values(rows), now_ms],",
        (f"{FINISH}a_lease_that_ran_out_but_was_not_taken_over_still_counts",),
    ),
    Mistake(
        "True passes as token 1",
        ATTEMPTS, "if type(token) is not int or not", "if not",
        (f"{FINISH}what_cannot_be_meant_is_a_value_error_before_any_write",),
    ),
    Mistake(
        "a lost lease leaves no evidence",
        HANDING, "    _record_lost(ours, now)\n", "",
        (
            f"{CLAIM}taking_over_writes_that_the_earlier_token_was_lost",
            f"{KILLS}a_takeover_and_its_failure_row_come_together",
        ),
    ),
    Mistake(
        "refused late finishes leave no trace",
        ENDING, "job.token > result.token:", "job.token < result.token:",
        (f"{FINISH}late_finishes_are_counted_each_time_and_kept_once",),
    ),
    Mistake(
        "a full round of burials hands out nothing",
        HANDING, "with_budget=left == 0", "with_budget=False",
        (f"{BURY}a_hundred_are_buried_in_a_call_and_it_still_hands_out",),
    ),
    Mistake(
        "burials without a bound",
        HANDING, "is not None][:left]", "is not None]",
        (f"{BURY}the_bound_holds_for_every_size_of_a_claim",),
    ),
    Mistake(
        "a paused queue goes on",
        HANDING, "if policy.paused:", "if policy.paused and policy.accepting is None:",
        (f"{CLAIM}a_paused_queue_hands_out_and_buries_nothing_until_it_goes_on",),
    ),
    Mistake(
        "the code is lost at the quarantine",
        ENDS, "reason = g.reason, code = g.code\"", "reason = g.reason, code = ''\"",
        (f"{FINISH}an_end_moves_the_job_once_and_keeps_its_body",),
    ),
    Mistake(
        "the quantity is wiped at a claim",
        HANDING, "Lease(job.id, job.queue, job.quantity,", "Lease(job.id, job.queue, 1,",
        (f"{CLAIM}a_claim_hands_out_the_job_with_a_new_token_and_one_attempt_spent",),
    ),
    Mistake(
        "the database transaction begins as a reader",
        "snackops/settings.py", '"transaction_mode": "IMMEDIATE"', '"transaction_mode": "DEFERRED"',
        (f"{BARRIERS}claim_and_claim_one_gets_it",),
    ),
    # --- what counts as success
    Mistake(
        "lenient acknowledgement: 1 is success",
        RUNS, "if answer is not True:", "if answer != True:  # noqa: E712",
        (f"{RUN}only_true_itself_is_success",),
    ),
    Mistake(
        "lenient acknowledgement: whatever is truthy, such as \"ok\"",
        RUNS, "if answer is not True:", "if not answer:",
        (f"{RUN}only_true_itself_is_success",),
    ),
    Mistake(
        "lenient acknowledgement on the wire: ok may be \"true\"",
        "queue_app/policy/answers.py", 'if answer.get("ok") is not True:', 'if not answer.get("ok"):',
        (f"{ANSWERS}everything_else_is_none_and_says_why",),
    ),
    Mistake(
        "unknown exceptions as retry",
        RUNS, "        keep_unknown(lease, error, now_ms=now_ms)\n        raise\n",
        '        return Result(lease.id, lease.token, "retry", "exception")\n',
        (f"{RUN}an_unexpected_exception_reaches_the_caller_and_the_job_stays_leased",),
    ),
    Mistake(
        "an unknown answer is not written down",
        RUNS, "        keep_unknown(lease, error, now_ms=now_ms)\n", "",
        (f"{RUN}only_true_itself_is_success",),
    ),
)  # fmt: skip
