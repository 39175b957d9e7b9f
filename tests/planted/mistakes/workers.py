"""The worker, and closing a queue."""

from tests.planted.mistake import Mistake

RUNS = "queue_app/services/runs.py"
CHECKPOINTS = "tests/delivery/test_checkpoints.py::test_"
LEASED = "tests/delivery/test_leases.py::test_"
WORKER = "tests/delivery/test_worker.py::test_"
MANY = "tests/delivery/test_many_at_once.py::test_"
PACES = "tests/policy/test_paces.py::test_"
HOLDING = "queue_app/delivery/holding.py"
HANDS = "queue_app/delivery/hands.py"

MISTAKES = (
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
        "anybody lets a worker end",
        "queue_app/services/workers.py", 'require(actor, "drain_worker")', 'actor.may("drain_worker")',
        ("tests/services/test_workers.py::test_a_worker_is_told_once_and_by_a_lead",),
    ),
    Mistake(
        "a sign of life takes back that the worker is to end",
        "queue_app/services/life_signs.py", '    if not told.get("draining"):\n', "    if told is None:\n",
        ("tests/services/test_workers.py::test_signs_of_life_leave_the_word_alone_and_a_new_start_takes_it_away",),
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
)  # fmt: skip
