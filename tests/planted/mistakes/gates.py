"""What stands between a queue and its receiver, and the receiver itself."""

from tests.planted.mistake import Mistake

RECEIVER = "tests/receiver/test_idempotency.py::test_"
LEDGER = "queue_app/receiver/ledger.py"
BREAKERS = "queue_app/policy/breakers.py"
GATES = "queue_app/services/gates.py"
UNBLOCKS = "queue_app/services/unblocks.py"
BREAK = "tests/policy/test_breakers.py::test_"
GATE = "tests/services/test_gates.py::test_"
PASS = "tests/services/test_unblocks.py::test_"
GATE_RACES = "tests/engine/test_gate_races.py::test_"

MISTAKES = (
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
)  # fmt: skip
