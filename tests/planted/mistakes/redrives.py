"""Redrives, the rights that they need, the record and the counters."""

from tests.planted.mistake import Mistake

FINISH = "tests/engine/test_finish.py::test_"
REDRIVE = "tests/engine/test_redrive.py::test_"
KILLS = "tests/engine/test_kills.py::test_"
CHAIN = "tests/policy/test_chain.py::test_"
MODEL = "tests/engine/test_model.py::test_the_engine_does_what_its_model_does"
JOBS = "queue_app/store/jobs.py"
REDRIVES = "queue_app/services/redrives.py"
EVIDENCE = "queue_app/store/evidence.py"
PEOPLE = "queue_app/services/people.py"
NOTE = "queue_app/policy/notes.py"

MISTAKES = (
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
        "an export is refused without a trace",
        "queue_app/services/asking.py",
        "    with recorded(user, right, target, channel=channel, proof=proof, once_in_ms=once_in_ms):\n",
        "    if recorded:\n",
        ("tests/exports/test_exports.py::test_whoever_is_refused_costs_no_reading",),
    ),
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
)  # fmt: skip
