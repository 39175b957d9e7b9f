"""Time and budget."""

from tests.planted.mistake import Mistake

CLAIM = "tests/engine/test_claim.py::test_"
BURY = "tests/engine/test_burials.py::test_"
FINISH = "tests/engine/test_finish.py::test_"
RENEW = "tests/engine/test_renew_release.py::test_"
RUN = "tests/engine/test_run_once.py::test_"
DECISIONS = "tests/policy/test_decisions.py::test_"
MODEL = "tests/engine/test_model.py::test_the_engine_does_what_its_model_does"
JOBS = "queue_app/store/jobs.py"
DECIDE = "queue_app/policy/decisions.py"
ENDS = "queue_app/store/ends.py"

MISTAKES = (
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
)  # fmt: skip
