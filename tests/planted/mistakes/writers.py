"""The write lock, turns and conflicts."""

from tests.planted.mistake import Mistake

DATABASE = "queue_app/store/database.py"
TURNS = "tests/store/test_fairness.py::test_"
ANEW = "tests/store/test_begun_anew.py::test_"

MISTAKES = (
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
)  # fmt: skip
