"""What growth relies on: tombstones, archives, recounts, pages of long lives."""

from tests.planted.mistake import Mistake

KEEPING = "queue_app/services/housekeeping.py"
KEPT = "tests/growth/test_housekeeping.py::test_"

MISTAKES = (
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
        "growth: a bounded look reads past its fence",
        "queue_app/reads/dead.py", "    times = _between(times, None, fence, newest_first)\n", "",
        ("tests/reads/test_bounded_looks.py::test_a_look_costs_the_same_beside_300_rows_and_beside_ten_times_as_many",),
    ),
    Mistake(
        "growth: a page shows a token of its neighbour",
        "queue_app/reads/life_steps.py", "set(tokens[:TOKENS])", "set(tokens)",
        ("tests/growth/test_long_lives.py::test_walking_both_ways_shows_every_step_once_and_the_same_pages",),
    ),
)  # fmt: skip
