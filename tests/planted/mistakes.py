"""The table of mistakes: what somebody might write, and the tests that must notice it."""

from dataclasses import dataclass

CLAIM, BURY, FINISH, RENEW = (
    f"tests/engine/test_{name}.py::test_" for name in ("claim", "burials", "finish", "renew_release")
)
ENQUEUE, REDRIVE, RUN = (f"tests/engine/test_{name}.py::test_" for name in ("enqueue", "redrive", "run_once"))
ORDERED, KILLS, BARRIERS = (f"tests/engine/test_{name}.py::test_" for name in ("ordered", "kills", "barriers"))
DECISIONS, CHAIN, NOTES, ANSWERS = (
    f"tests/policy/test_{name}.py::test_" for name in ("decisions", "chain", "notes", "answers")
)
LOSERS = "tests/engine/test_losers.py::test_"
RECEIVER = "tests/receiver/test_idempotency.py::test_"
MODEL = "tests/engine/test_model.py::test_the_engine_does_what_its_model_does"

JOBS, RUNS = "queue_app/store/jobs.py", "queue_app/services/runs.py"
REDRIVES, DECIDE = "queue_app/services/redrives.py", "queue_app/policy/decisions.py"
ATTEMPTS, ARRIVALS, ENDS = "queue_app/policy/attempts.py", "queue_app/store/arrivals.py", "queue_app/store/ends.py"
HANDING, ENDING = "queue_app/services/handing_out.py", "queue_app/services/ending.py"
ACCEPT, EVIDENCE, BODIES = (
    "queue_app/services/acceptance.py",
    "queue_app/store/evidence.py",
    "queue_app/policy/bodies.py",
)
PEOPLE, LEDGER, NOTE = "queue_app/services/people.py", "queue_app/receiver/ledger.py", "queue_app/policy/notes.py"

BREAKERS, GATES, UNBLOCKS = (
    "queue_app/policy/breakers.py",
    "queue_app/services/gates.py",
    "queue_app/services/unblocks.py",
)
BREAK, GATE, PASS = (
    f"tests/{name}.py::test_" for name in ("policy/test_breakers", "services/test_gates", "services/test_unblocks")
)
CHECKPOINTS, LEASED, WORKER, MANY = (
    f"tests/delivery/test_{name}.py::test_" for name in ("checkpoints", "leases", "worker", "many_at_once")
)
PACES = "tests/policy/test_paces.py::test_"
HOLDING, HANDS = "queue_app/delivery/holding.py", "queue_app/delivery/hands.py"
DATABASE = "queue_app/store/database.py"
TURNS, ANEW = (f"tests/store/test_{name}.py::test_" for name in ("fairness", "begun_anew"))
GATE_RACES = "tests/engine/test_gate_races.py::test_"
KEEPING, KEPT = "queue_app/services/housekeeping.py", "tests/growth/test_housekeeping.py::test_"


@dataclass(frozen=True)
class Mistake:
    """`old` stands exactly once in `file` and becomes `new`; each of `tests` (node ids) must fail then."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


MISTAKES = (
    # --- time and budget
    Mistake(
        "expiry boundary off by one",
        JOBS, "j.lease_until <= %s)", "j.lease_until < %s)",
        (f"{CLAIM}the_boundary_of_a_lease_belongs_to_the_taker", MODEL),
    ),
    Mistake(
        "due boundary off by one",
        JOBS, "j.available_at <= %s ", "j.available_at < %s ",
        (f"{CLAIM}a_pending_job_is_due_from_its_instant_on",),
    ),
    Mistake(
        "deadline boundary off by one",
        DECIDE, "spent.deadline <= now_ms", "spent.deadline < now_ms",
        (
            f"{BURY}a_pending_job_is_too_late_at_its_deadline",
            f"{DECISIONS}a_job_without_budget_is_buried_and_exhaustion_wins",
        ),
    ),
    Mistake(
        "a next try exactly at the deadline is granted",
        DECIDE, "now_ms + wait_ms >= spent.deadline", "now_ms + wait_ms > spent.deadline",
        (f"{FINISH}a_next_try_at_or_after_the_deadline_is_too_late",),
    ),
    Mistake(
        "one attempt too many",
        DECIDE, '    if spent.attempts >= spent.max_attempts:\n        return Quarantine(',
        '    if spent.attempts > spent.max_attempts:\n        return Quarantine(',
        (f"{RUN}the_last_retry_is_dead", f"{DECISIONS}a_finish_is_done_another_try_or_quarantine"),
    ),
    Mistake(
        "the deadline wins over exhaustion at a burial",
        DECIDE, '        return "exhausted"\n', '        return "deadline" if spent.deadline <= now_ms else "exhausted"\n',
        (f"{BURY}exhausted_wins_over_the_deadline",),
    ),
    Mistake(
        "the wait budget counts its own limit as above it",
        DECIDE, "spent.waited_ms + wait_ms > policy.wait_budget_ms", "spent.waited_ms + wait_ms >= policy.wait_budget_ms",
        (f"{FINISH}waits_above_the_wait_budget_are_exhaustion",),
    ),
    Mistake(
        "the wait budget looks at the last wait only",
        ENDS, "waited_ms = jobs.waited_ms + g.wait_ms", "waited_ms = g.wait_ms",
        (f"{FINISH}the_wait_budget_is_over_the_sum_of_all_waits",),
    ),
    Mistake(
        "waits grow by steps instead of doubling",
        DECIDE, "policy.wait_base_ms << min(attempt - 1, 40)", "policy.wait_base_ms * attempt",
        (f"{DECISIONS}the_wait_doubles_from_one_second_to_five_minutes",),
    ),
    Mistake(
        "jitter that nobody asked for",
        DECIDE, "policy.wait_cap_ms) + jitter_ms", "policy.wait_cap_ms) + (jitter_ms or hash(policy.name) % 7 + 1)",
        (f"{DECISIONS}jitter_is_an_argument_and_none_by_itself",),
    ),
    Mistake(
        "Retry-After is believed without bound",
        DECIDE, "min(max(retry_after_ms or 0, 0), RETRY_AFTER_CAP_MS)", "max(retry_after_ms or 0, 0)",
        (f"{FINISH}the_receivers_wish_counts_when_longer_and_within_bounds",),
    ),
    Mistake(
        "a shorter Retry-After overrules the plan",
        DECIDE, "return max(planned, asked)", "return asked or planned",
        (f"{FINISH}the_receivers_wish_counts_when_longer_and_within_bounds",),
    ),
    Mistake(
        "a renewed lease outlives the deadline",
        DECIDE, "min(now_ms + lease_ms, deadline + lease_ms)", "now_ms + lease_ms",
        (f"{RENEW}a_lease_never_lasts_past_the_deadline_by_more_than_one_lease",),
    ),
    Mistake(
        "a renewal can shorten a lease",
        ENDS, "CASE WHEN jobs.lease_until > g.until THEN jobs.lease_until ELSE g.until END", "g.until",
        (f"{RENEW}a_clock_that_went_back_does_not_shorten_a_lease",),
    ),
    Mistake(
        "releasing spends the attempt",
        ENDS, "attempts = CASE WHEN jobs.attempts > 0 THEN jobs.attempts - 1 ELSE 0 END", "attempts = jobs.attempts",
        (f"{RENEW}a_job_given_back_is_available_at_once_with_its_attempt_and_its_token", MODEL),
    ),
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
    # --- acceptance
    Mistake(
        "payloads compared as Python compares them: 1 == 1.0 == True",
        BODIES, "str(quantity), payload, order_key)",
        'str(quantity), payload.replace(".0", "").replace("true", "1"), order_key)',
        (f"{ENQUEUE}the_same_id_with_another_body_is_a_conflict_and_nothing_changes",),
    ),
    Mistake(
        "the order key does not belong to the body",
        BODIES, "str(quantity), payload, order_key)", "str(quantity), payload)",
        (f"{ENQUEUE}the_same_id_with_another_body_is_a_conflict_and_nothing_changes",),
    ),
    Mistake(
        "the same order twice in a batch is accepted twice",
        ACCEPT, "                others.append(place)", "                others.copy()",
        (f"{ENQUEUE}many_orders_get_an_answer_each_in_order_and_a_refusal_stops_nobody",),
    ),
    Mistake(
        "removed orders are forgotten",
        ARRIVALS, "return known | dict(fetch(", "return known or dict({} and fetch(",
        (f"{ENQUEUE}the_id_of_a_removed_order_is_known_for_ever",),
    ),
    Mistake(
        "one order too many fits into a full queue",
        ACCEPT, "if room > 0:", "if room >= 0:",
        (f"{ENQUEUE}a_full_queue_takes_the_next_order_only_when_one_has_ended",),
    ),
    Mistake(
        "orders of a batch lose their order",
        ARRIVALS, "    return list(range(last - count + 1, last + 1))", "    return list(range(last, last - count, -1))",
        (f"{ENQUEUE}orders_keep_the_order_of_their_acceptance",),
    ),
    # --- ordered queues
    Mistake(
        "a dead order does not block the later ones of its key",
        JOBS, "e.state IN ('pending', 'leased', 'dead')", "e.state IN ('pending', 'leased')",
        (f"{ORDERED}the_next_follows_success_and_waits_for_everything_else",),
    ),
    Mistake(
        "an unblock holds for every later death too",
        JOBS, "u.job_id = e.id AND u.token = e.token AND", "u.job_id = e.id AND",
        (f"{ORDERED}an_unblock_lets_the_later_ones_pass_one_dead_job_at_that_token_only",),
    ),
    # --- redrive
    Mistake(
        "token reset at redrive",
        JOBS, "attempts = 0, max_attempts = %s", "attempts = 0, token = 0, max_attempts = %s",
        (f"{REDRIVE}a_redrive_restarts_with_a_new_budget_and_keeps_token_body_and_evidence", MODEL),
    ),
    Mistake(
        "attempts not reset at redrive",
        JOBS, "attempts = 0, max_attempts = %s", "max_attempts = %s",
        (f"{REDRIVE}a_redrive_restarts_with_a_new_budget_and_keeps_token_body_and_evidence", MODEL),
    ),
    Mistake(
        "deadline not renewed at redrive",
        JOBS, "max_attempts = %s, deadline = %s, \"", "max_attempts = %s, deadline = deadline + 0 * %s, \"",
        (f"{REDRIVE}a_redrive_restarts_with_a_new_budget_and_keeps_token_body_and_evidence", MODEL),
    ),
    Mistake(
        "the waits of the old budget burden the new one",
        JOBS, "waited_ms = 0, redriven", "redriven",
        (f"{REDRIVE}a_redrive_restarts_with_a_new_budget_and_keeps_token_body_and_evidence",),
    ),
    Mistake(
        "the reason is wiped from the redrive's row",
        REDRIVES, "reason=job.reason,", 'reason="",',
        (f"{REDRIVE}a_redrive_restarts_with_a_new_budget_and_keeps_token_body_and_evidence",),
    ),
    Mistake(
        "the reason stays when a job is restarted",
        JOBS, "SET state = 'pending', reason = '', code = '',", "SET state = 'pending',",
        (f"{REDRIVE}a_redrive_restarts_with_a_new_budget_and_keeps_token_body_and_evidence",),
    ),
    Mistake(
        "the quantity is wiped at redrive",
        JOBS, "attempts = 0, max_attempts = %s", "attempts = 0, quantity = 1, max_attempts = %s",
        (f"{REDRIVE}a_redrive_restarts_with_a_new_budget_and_keeps_token_body_and_evidence",),
    ),
    Mistake(
        "redrive of a pending job",
        REDRIVES, 'if job.state != "dead":', 'if job.state in ("leased", "done"):',
        (f"{REDRIVE}only_the_dead_are_restarted",),
    ),
    Mistake(
        "the restart's guard forgets the state",
        JOBS, "\"WHERE id = %s AND state = 'dead' AND token = %s\",", "\"WHERE id = %s AND token = %s\",",
        (f"{REDRIVE}a_restart_whose_job_moved_meanwhile_is_no_restart",),
    ),
    Mistake(
        "redrives row and job update in two transactions",
        REDRIVES, "        chain.append([approver.event(", "    chain.append([approver.event(",
        (
            f"{REDRIVE}if_the_record_cannot_be_written_nothing_restarts",
            f"{KILLS}redrive_is_dead_without_a_row_or_pending_with_row_and_event",
        ),
    ),
    Mistake(
        "a redrive without its audit event",
        REDRIVES, "chain.append([approver.event(", "chain.append([] and [approver.event(",
        (f"{REDRIVE}a_redrive_restarts_with_a_new_budget_and_keeps_token_body_and_evidence", MODEL),
    ),
    Mistake(
        "a note with spaces",
        NOTE, "[A-Za-z0-9][A-Za-z0-9._:/-]{0,63}\")", "[A-Za-z0-9][A-Za-z0-9 ._:/-]{0,63}\")",
        (f"{REDRIVE}a_bad_note_is_refused_before_any_query",),
    ),
    Mistake(
        "a note that is not ASCII",
        NOTE, "[A-Za-z0-9][A-Za-z0-9._:/-]{0,63}\")", "\\w[\\w.:/-]{0,63}\")",
        (f"{REDRIVE}a_bad_note_is_refused_before_any_query",),
    ),
    Mistake(
        "a note that goes on after a newline",
        NOTE, "if _NOTE.fullmatch(value):", "if re.match(_NOTE.pattern + \"$\", value):",
        (f"{REDRIVE}a_bad_note_is_refused_before_any_query",),
    ),
    Mistake(
        "a superuser's implicit rights count",
        PEOPLE, "    return Actor(row[\"id\"], row[\"username\"], roles, channel, proof)",
        "    return Actor(row[\"id\"], row[\"username\"], rights.ROLES if user.is_superuser else roles, channel, proof)",
        (f"{REDRIVE}a_superusers_implicit_rights_do_not_count",),
    ),
    Mistake(
        "a deactivated approver goes on approving",
        PEOPLE, 'if row is None or not row["is_active"]:', "if row is None:",
        (f"{REDRIVE}rights_are_those_of_this_moment_not_of_a_page",),
    ),
    Mistake(
        "one's own plan is told by the name",
        REDRIVES, "requested_by.pk == approver.id and not conf", "requested_by.get_username() == approver.name and not conf",
        (f"{REDRIVE}nobody_approves_what_they_asked_for",),
    ),
    Mistake(
        "an order held by another plan is restarted",
        REDRIVES, "if held is not None:", "if held == batch:",
        (f"{REDRIVE}an_order_held_by_another_open_plan_stays",),
    ),
    Mistake(
        "a closed plan holds its orders for ever",
        "queue_app/store/holds.py", "AND p.state IN ({placeholders(len(OPEN))})\",",
        "AND '' NOT IN ({placeholders(len(OPEN))})\",",
        (f"{REDRIVE}the_hold_of_a_closed_plan_counts_no_more",),
    ),
    Mistake(
        "dead for another code counts as the same",
        EVIDENCE, "r.reason = g.reason AND r.code = g.code THEN", "r.reason = g.reason THEN",
        (f"{REDRIVE}the_first_end_after_a_redrive_is_its_outcome",),
    ),
    # --- record and counters
    Mistake(
        "the chain does not hold the link before",
        "queue_app/policy/chain.py", 'f"{prev}\\n{canonical_ascii(', 'f"{canonical_ascii(',
        (f"{CHAIN}the_same_record_at_another_place_has_another_hash",),
    ),
    Mistake(
        "counters that only grow",
        "queue_app/store/triggers_sqlite.py", '_count(-1, "OLD") + _count(1, "NEW")', '_count(1, "NEW")',
        (f"{FINISH}an_end_moves_the_job_once_and_keeps_its_body", MODEL),
    ),
    # --- the receiver
    Mistake(
        "the receiver's check and write apart",
        LEDGER, "            self._between()\n            if known is None:",
        '            link.execute("COMMIT")\n            self._between()\n            link.execute("BEGIN IMMEDIATE")\n'
        "            if known is None:",
        (f"{RECEIVER}of_two_posts_released_together_one_is_applied_and_one_is_a_duplicate_in_every_round",),
    ),
    Mistake(
        "the receiver does not look at the quantity of a known id",
        LEDGER, '"duplicate" if known == quantity else "conflict"', '"duplicate"',
        (
            f"{RECEIVER}the_same_id_with_another_quantity_is_a_conflict_that_counts_as_a_request_only",
            "tests/engine/test_stories.py::test_the_same_id_with_another_quantity_is_a_conflict_at_the_queue_and_at_the_receiver",
        ),
    ),
    # --- what stands between a queue and its receiver
    Mistake(
        "the breaker opens one failure late",
        BREAKERS, "return failed >= rules.after", "return failed > rules.after",
        (
            f"{BREAK}the_last_failure_that_is_needed_opens_it_and_the_one_before_does_not",
            f"{GATE}a_row_of_failures_opens_it_and_no_attempt_is_spent_while_it_is_open",
        ),
    ),
    Mistake(
        "a crowd of failures opens the breaker, however short",
        BREAKERS, " and failed * silent_ms >= rules.after * SILENT_MS", "",
        (
            f"{BREAK}number_and_time_together_say_that_it_fails_everything",
            f"{GATE}the_tries_of_one_cause_that_fall_together_open_nothing",
        ),
    ),
    Mistake(
        "a success leaves the row of failures",
        BREAKERS, '(CLOSED, WORKS): "reset"', '(CLOSED, WORKS): "stay"',
        (f"{BREAK}any_answer_ends_the_row_and_what_never_was_a_request_leaves_it", f"{GATE}any_answer_ends_the_row"),
    ),
    Mistake(
        "a failure outweighs an answer that is told beside it",
        BREAKERS, "_HEARD = (WORKS, PROBE_FAILS, PROBE_NEITHER, ANSWERS, FAILS, NEITHER)",
        "_HEARD = (PROBE_FAILS, PROBE_NEITHER, FAILS, WORKS, ANSWERS, NEITHER)",
        (
            f"{BREAK}one_answer_among_a_thousand_failures_of_a_turn_counts_wherever_it_stands",
            f"{GATE}an_answer_told_together_with_failures_speaks_for_the_receiver_wherever_it_stands",
        ),
    ),
    Mistake(
        "only the last answer of a turn is heard",
        BREAKERS, "heard = [_told_to(breaker, end) for end in ends]", "heard = [_told_to(breaker, ends[-1])]",
        (
            f"{BREAK}one_answer_among_a_thousand_failures_of_a_turn_counts_wherever_it_stands",
            f"{GATE}an_answer_told_together_with_failures_speaks_for_the_receiver_wherever_it_stands",
        ),
    ),
    Mistake(
        "refusals of single orders stop all others",
        BREAKERS, 'if outcome == "permanent" or code in _THERE:', "if code in _THERE:",
        (f"{BREAK}what_a_try_tells_of_the_receiver", f"{GATE}refusals_of_single_orders_open_nothing"),
    ),
    Mistake(
        "the probe waits one millisecond longer",
        BREAKERS, "return left_ms <= 0 or", "return left_ms < 0 or",
        (
            f"{BREAK}one_order_may_be_handed_out_from_the_end_of_the_wait_on",
            f"{GATE}one_order_asks_and_its_success_closes",
        ),
    ),
    Mistake(
        "a failed probe waits no longer than the first",
        BREAKERS, "min(probes_failed // ASKED, 30)", "0",
        (
            f"{BREAK}waits_double_up_to_the_bound_and_a_longer_rule_is_its_own_bound",
            f"{GATE}three_failed_probes_double_the_wait",
        ),
    ),
    Mistake(
        "one order that fails for itself doubles the wait",
        BREAKERS, "now_ms if probes % ASKED else ", "",
        (f"{BREAK}the_probes_answer_decides", f"{GATE}a_probe_that_fails_for_itself_keeps_no_other_order_waiting"),
    ),
    Mistake(
        "a dead probe keeps the queue shut for ever",
        BREAKERS, "return 0 if probe_runs else 1", "return 0",
        (f"{GATE}a_probe_whose_worker_died_makes_room_for_the_next_at_the_end_of_its_lease",),
    ),
    Mistake(
        "a second probe beside the first",
        BREAKERS, "return 0 if probe_runs else 1", "return 1",
        (
            f"{GATE}one_order_asks_and_its_success_closes",
            f"{GATE_RACES}two_at_the_instant_of_the_probe_one_gets_an_order",
        ),
    ),
    Mistake(
        "the rate is never spent",
        GATES, "buckets.spent(bucket, len(leases))", "bucket",
        (
            f"{GATE}all_workers_together_get_what_the_bucket_holds_and_time_fills_it_again",
            f"{GATE_RACES}two_claimers_share_what_is_there_for_one",
        ),
    ),
    Mistake(
        "an unblock of an order that died anew",
        UNBLOCKS, " or job.token != token:", ":",
        (f"{PASS}what_the_person_saw_must_be_what_is_there",),
    ),
    Mistake(
        "anybody lets later orders pass",
        UNBLOCKS, 'require(actor, "unblock")', 'require(actor, "read")',
        (f"{PASS}others_are_refused_and_that_is_recorded",),
    ),
    # --- the worker
    Mistake(
        "worker: a cancelled delivery has its effect all the same",
        RUNS, "if self.signal.cancelled or self.signal.lost:", "if self.signal.lost:",
        (
            f"{CHECKPOINTS}cancelled_right_before_the_effect_running_and_waiting_orders_go_back_and_nothing_is_written",
            f"{CHECKPOINTS}the_adapter_asks_after_connecting_and_before_the_first_byte",
        ),
    ),
    Mistake(
        "worker: a delivery whose lease is lost has its effect all the same",
        RUNS, "if self.signal.cancelled or self.signal.lost:", "if self.signal.cancelled:",
        (f"{LEASED}a_lost_lease_stops_at_the_checkpoint_and_gives_nothing_back_that_is_not_its_own",),
    ),
    Mistake(
        "worker: what may have had its effect is called not begun",
        "queue_app/delivery/http.py", "order.id, ends_at_ms, None)", "order.id, ends_at_ms, checkpoint)",
        (f"{CHECKPOINTS}what_may_have_had_its_effect_is_sent_again_and_never_called_not_begun",),
    ),
    Mistake(
        "worker: nothing is renewed",
        HOLDING, "        if not due:\n", "        if due:\n",
        (
            f"{LEASED}a_delivery_longer_than_its_lease_keeps_it_and_nobody_else_gets_the_order",
            f"{LEASED}a_delivery_is_told_that_its_lease_is_lost_and_its_end_is_refused",
        ),
    ),
    Mistake(
        "worker: a lost lease is told to nobody",
        HOLDING, "lease.signal.lost = True", "pass",
        (f"{LEASED}a_delivery_is_told_that_its_lease_is_lost_and_its_end_is_refused",),
    ),
    Mistake(
        "worker: a late cancel says nothing",
        HOLDING, "if lease.signal.cancelled:", "if lease.signal.lost:",
        (f"{CHECKPOINTS}after_the_fourth_effect_a_cancel_leaves_four_and_says_that_it_came_too_late",),
    ),
    Mistake(
        "worker: what waits begins though it was told to stop",
        HANDS, "if self.closed or signal.cancelled or", "if signal.cancelled or",
        (f"{WORKER}told_to_stop_it_ends_the_running_delivery_and_gives_the_rest_back",),
    ),
    Mistake(
        "worker: a delivery begins with a lease that may be over",
        HANDS, " or begun_ms + self.margin_ms > signal.good_until_ms", "",
        (f"{WORKER}a_lease_that_may_be_over_in_hand_is_given_back_and_not_delivered",),
    ),
    Mistake(
        "worker: slow jobs are taken ahead",
        "queue_app/policy/paces.py", "    if rate_mj < FASTEST_SLOW_MJ:\n        return 0\n", "",
        (
            f"{PACES}slow_jobs_wait_for_nobody_and_none_is_taken_ahead",
            f"{MANY}what_waits_in_hand_of_a_receiver_that_became_slow_is_given_back",
        ),
    ),
    Mistake(
        "worker: what ended the process is hidden",
        HOLDING, "self.fatal = self.fatal or error", "pass",
        (f"{WORKER}what_is_meant_to_end_the_process_reaches_the_caller_and_the_rest_is_given_back",),
    ),
    Mistake(
        "worker: a pause is not seen",
        "queue_app/delivery/worker.py", "self._paused = self._policy.paused", "self._paused = False",
        (
            f"{CHECKPOINTS}a_queue_that_is_paused_gives_back_what_has_not_begun_and_goes_on_when_resumed",
            f"{LEASED}the_end_of_a_cancelled_queue_comes_without_its_orders_and_loses_none",
        ),
    ),
    Mistake(
        "anybody closes a queue",
        "queue_app/services/queues.py", "require(actor, right)", "actor_of(user)",
        ("tests/services/test_queues.py::test_only_a_team_lead_may_and_the_refusal_is_recorded",),
    ),
    Mistake(
        "a closed queue leaves no event",
        "queue_app/services/queues.py", "        if first:\n", "        if not first:\n",
        ("tests/services/test_queues.py::test_each_move_stands_at_once_and_leaves_one_event",),
    ),
    Mistake(
        "a receiver may forget an id as early as its last delivery",
        "queue_app/policy/queues.py", "policy.receiver_keeps_ms <= longest", "policy.receiver_keeps_ms < longest",
        ("tests/policy/test_queues.py::test_a_receiver_that_may_forget_an_id_before_its_last_delivery_is_refused",),
    ),
    # --- the lock, turns and conflicts
    Mistake(
        "turns: nobody steps back",
        DATABASE, "    if steps_back:", "    if False:",
        (f"{TURNS}one_who_saw_another_commit_steps_back_after_its_own", f"{TURNS}one_who_writes_alone_for_long_looks_around"),
    ),
    Mistake(
        "turns: one alone pays for them",
        DATABASE, "due = at_once and (others or", "due = at_once and (True or",
        (f"{TURNS}a_process_alone_does_not_pay_for_fairness",),
    ),
    Mistake(
        "turns: a conflict is the caller's trouble",
        DATABASE, "                if not is_conflict(error):", "                if True:",
        (f"{ANEW}a_conflict_at_any_statement_is_as_if_it_had_not_happened",),
    ),
    Mistake(
        "turns: a lost connection is repeated blindly",
        DATABASE, "                if not is_conflict(error):", "                if False:",
        (f"{ANEW}what_is_no_conflict_is_told_at_once",),
    ),
    Mistake(
        "turns: one inside another's transaction begins anew",
        DATABASE, "        if connection.in_atomic_block:\n            return service",
        "        if False:\n            return service",
        (f"{ANEW}inside_anothers_transaction_only_its_owner_may_begin_anew",),
    ),
    # --- growth
    Mistake(
        "growth: no tombstone",
        KEEPING, "    tombstones.bury(removed, now)\n", "",
        (f"{KEPT}only_done_orders_of_their_time_go_and_each_has_a_tombstone",),
    ),
    Mistake(
        "growth: removed without its line in the archive",
        KEEPING, "    if archive is not None and seen.jobs:", "    if False:",
        (f"{KEPT}the_archive_is_its_owners_own_and_holds_every_removed_order",),
    ),
    Mistake(
        "growth: an investigated order goes",
        "queue_app/store/done_jobs.py", "v.job_id = j.id AND v.job_id <> ''", "1 = 0",
        (f"{KEPT}what_an_open_redrive_or_an_investigation_refers_to_stays",),
    ),
    Mistake(
        "growth: an order of a batch without its seal goes",
        "queue_app/store/done_jobs.py", "AND p.sealed_at_ms IS NULL", "AND 1 = 0",
        (f"{KEPT}what_an_open_redrive_or_an_investigation_refers_to_stays",),
    ),
    Mistake(
        "growth: two that mend at once mend twice",
        "queue_app/store/recounts.py", "    if not places.replace(", "    if False and not places.replace(",
        ("tests/growth/test_counters.py::test_a_correction_by_somebody_else_is_not_made_twice",),
    ),
    Mistake(
        "growth: a page shows a token of its neighbour",
        "queue_app/reads/life_steps.py", "set(tokens[:TOKENS])", "set(tokens)",
        ("tests/growth/test_long_lives.py::test_walking_both_ways_shows_every_step_once_and_the_same_pages",),
    ),
)  # fmt: skip
