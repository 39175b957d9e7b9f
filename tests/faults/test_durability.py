"""What is acknowledged is on the disk: each commit is synced, counted by the system calls of a real process."""

import re

import pytest

from tests.faults.patient import traceable

pytestmark = pytest.mark.django_db
COMMITS = 40


@pytest.mark.parametrize("move", ["enqueue", "claim"])
def test_every_commit_is_synced_and_ends_with_a_sync(patient, file, tmp_path, move):
    if sentence := traceable():
        print(sentence)
        return
    orders = [["enqueue", {"id": f"o{n}", "quantity": 1}] for n in range(COMMITS)]
    moves = orders if move == "enqueue" else [["claim", {"owner": "w"}] for _ in range(COMMITS)]
    if move == "claim":
        assert set(patient.does(file, *orders)) == {"accepted"}
    kept = tmp_path / "calls"
    answers = patient.does(file, *moves, trace=str(kept))
    assert len([answer for answer in answers if answer]) == COMMITS
    calls = re.findall(r"(pwrite64|fdatasync|fsync|ftruncate)\(", kept.read_text())
    syncs = len([call for call in calls if call.endswith("sync")])
    # journal, its header, the database, and the header again that ends the journal: four for each commit
    assert syncs >= 4 * COMMITS
    assert calls[-1] in ("fdatasync", "fsync"), "something was written after the last sync"
    print(f"{move}: {syncs / COMMITS:.1f} syncs a commit")


def test_the_count_notices_a_commit_that_is_not_synced(patient, file, tmp_path):
    if sentence := traceable():
        print(sentence)
        return
    kept = tmp_path / "calls"
    patient.does(
        file,
        ["sql", {"statement": "PRAGMA synchronous = OFF"}],
        ["enqueue", {"id": "a", "quantity": 1}],
        trace=str(kept),
    )
    assert "pwrite64(" in kept.read_text()
    assert "sync(" not in kept.read_text()
