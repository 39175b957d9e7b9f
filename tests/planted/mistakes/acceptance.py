"""Taking orders in, and the order of an ordered queue."""

from tests.planted.mistake import Mistake

ENQUEUE = "tests/engine/test_enqueue.py::test_"
ORDERED = "tests/engine/test_ordered.py::test_"
JOBS = "queue_app/store/jobs.py"
ARRIVALS = "queue_app/store/arrivals.py"
ACCEPT = "queue_app/services/acceptance.py"
BODIES = "queue_app/policy/bodies.py"

MISTAKES = (
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
)  # fmt: skip
