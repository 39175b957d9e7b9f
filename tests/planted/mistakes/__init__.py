"""The table of mistakes: what somebody might write, and the tests that must notice it. One file for each theme."""

from tests.planted.mistakes import acceptance, budgets, ends, gates, growth, redrives, workers, writers

MISTAKES = (
    *budgets.MISTAKES,
    *ends.MISTAKES,
    *acceptance.MISTAKES,
    *redrives.MISTAKES,
    *gates.MISTAKES,
    *workers.MISTAKES,
    *writers.MISTAKES,
    *growth.MISTAKES,
)
