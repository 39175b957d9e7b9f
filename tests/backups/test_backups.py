"""Backup while everything runs, and restore into a new place: the same on both databases."""

import json
import stat
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError

from queue_app.models import AuditEvent, Job
from queue_app.policy.manifests import parse
from queue_app.reads import chain, standings
from queue_app.services import backups, queue
from queue_app.services.backups import MANIFEST
from queue_app.store import triggers
from tests.backups.conftest import Place, Run, python, tell_a_story
from tests.conftest import Clock, RealDatabase
from tests.engine.invariants import check_all
from tests.reads.stories import accept, deliver
from tests.receiver.conftest import open_receiver
from tests.receiver.http_client import post_order

__all__ = ["open_receiver"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def told(clock: Clock, team_lead: User) -> None:
    tell_a_story(team_lead, clock)


def data_of(folder: Path) -> Path:
    return folder / parse((folder / MANIFEST).read_bytes()).file


def test_everything_comes_back_and_goes_on_working(told: None, clock: Clock, tmp_path: Path, new_place: Place) -> None:
    made = backups.make(tmp_path / "monday")
    assert made.manifest.standing.orders == {"dead": 1, "done": 3, "leased": 1, "pending": 2}
    before = standings.standing()
    assert made.manifest.standing == before
    done = backups.restore(tmp_path / "monday", new_place.into)
    assert done.problems == ()
    assert [remark for remark in done.remarks if remark.startswith("1 orders were being delivered")]
    with new_place.living():
        assert standings.standing() == before
        assert triggers.missing() == []
        check_all(["dead-1", "dead-2", "done-1", "done-2", "leased-1", "wait-1", "wait-2"])
        leases = queue.claim("w2", limit=5, now_ms=clock.now + 60_000)
        assert {lease.id for lease in leases} == {"leased-1", "wait-1", "wait-2"}
        assert all(queue.finish(lease.id, lease.token, "ok", now_ms=clock.now + 60_000) for lease in leases)
        assert queue.enqueue("new-1", 1, now_ms=clock.now + 60_000) == "accepted"
        check_all()
    assert standings.standing() == before, "work in the copy reached the original"


def test_a_backup_is_for_its_owner_only_and_stands_in_the_record(told: None, tmp_path: Path) -> None:
    made = backups.make(tmp_path / "monday")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (made.folder, *made.folder.iterdir())}
    assert modes == {"monday": 0o700, made.manifest.file: 0o600, MANIFEST: 0o600}
    assert made.recorded
    event = AuditEvent.objects.get(action="backup")
    assert (event.actor_id, event.source, event.target) == (None, "cli", "database")
    assert made.manifest.standing.anchor == chain.anchor()
    assert [path.name for path in tmp_path.iterdir()] == ["monday"]


def test_a_database_that_takes_no_write_is_backed_up_all_the_same(
    told: None, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_events: object) -> None:
        raise DatabaseError

    monkeypatch.setattr(backups.chain, "append", refuse)
    status, said, _ = run("backup", tmp_path / "monday")
    assert status == 0
    assert "so this backup is not in the record" in said


def test_every_order_acknowledged_before_it_began_is_in_it_while_two_writers_go_on(
    real_database: RealDatabase, tmp_path: Path, new_place: Place
) -> None:
    with ExitStack() as stack:
        writers = [python("tests.backups.writer", name, environ=real_database.environ) for name in ("w1", "w2")]
        for writer in writers:
            stack.enter_context(writer)
            stack.callback(writer.kill)
        before = [writer.stdout.readline().strip() for writer in writers for _ in range(10)]
        backups.make(tmp_path / "monday")
        for writer in writers:
            writer.stdin.close()
        # read to the end, not by `communicate`: it passes by what `readline` has taken in beyond its line
        written = [writer.stdout.read().split() for writer in writers]
        assert [writer.wait(60) for writer in writers] == [0, 0]
    assert all(written), "the writers did not go on"
    done = backups.restore(tmp_path / "monday", new_place.into)
    assert done.problems == ()
    with new_place.living():
        check_all(before)
        kept = set(Job.objects.values_list("id", flat=True))
        for lines in written:  # nothing out of the middle is missing: it is one state, not a mixture
            held = [job_id in kept for job_id in lines]
            assert held == sorted(held, reverse=True)


def test_a_damaged_byte_is_found_and_nothing_is_put_anywhere(
    told: None, run: Run, tmp_path: Path, new_place: Place
) -> None:
    data = data_of(backups.make(tmp_path / "monday").folder)
    whole = data.read_bytes()
    for at in (0, len(whole) // 2, len(whole) - 1):
        raw = bytearray(whole)
        raw[at] ^= 1
        data.write_bytes(raw)
        status, said, error = run("restore", tmp_path / "monday", "--into", new_place.into)
        assert (status, said) == (2, "")
        assert error.strip() == "The backup is damaged: its data is not what its manifest says. Nothing was restored."
        assert not Path(new_place.into).exists()
        assert not list(tmp_path.glob("*partial*"))


@pytest.mark.parametrize(
    ("value", "changed", "sentence"),
    [
        ("token_sum", 10**6, "Tokens are lower"),
        ("anchor", f"9:{'a' * 64}", "The anchor is ahead of the record"),
    ],
)
def test_a_copy_that_is_not_what_was_backed_up_is_in_place_and_said_to_be_so(
    value: str, changed: Any, sentence: str, told: None, run: Run, tmp_path: Path, new_place: Place
) -> None:
    manifest = backups.make(tmp_path / "monday").folder / MANIFEST
    record = json.loads(manifest.read_text())
    record["standing"][value] = changed
    manifest.write_text(json.dumps(record))
    status, said, _ = run("restore", tmp_path / "monday", "--into", new_place.into)
    assert status == 1
    assert any(line.startswith("PROBLEM: ") and sentence in line for line in said.splitlines()), said
    with new_place.living():
        assert Job.objects.count() == 7


def test_an_old_backup_is_known_by_a_younger_anchor(told: None, run: Run, tmp_path: Path, new_place: Place) -> None:
    backups.make(tmp_path / "monday")
    backups.make(tmp_path / "tuesday")
    anchor = run("audit", "head")[1].strip()
    status, said, _ = run("restore", tmp_path / "monday", "--into", new_place.into, "--expect", anchor)
    assert status == 1
    assert "PROBLEM: The anchor is ahead of the record" in said
    assert "this is an old backup" in said


def test_what_the_receiver_knows_beyond_the_backup_is_told(
    clock: Clock, run: Run, tmp_path: Path, new_place: Place, open_receiver: Any
) -> None:
    receiver = open_receiver()
    accept(["a", "b", "c"])
    deliver("a")
    post_order(receiver.url, "a", 1)
    backups.make(tmp_path / "monday")
    accept(["later"])
    for job_id in ("b", "later"):
        post_order(receiver.url, job_id, 1)
    status, said, _ = run("restore", tmp_path / "monday", "--into", new_place.into, "--receiver", receiver.url)
    assert status == 1
    assert "The receiver knows 1 orders that this backup does not" in said
    assert "The receiver has done 1 orders that wait for delivery in this backup." in said
    assert "harmless at a receiver that recognises ids" in said
    assert "PROBLEM" not in said
    assert "DATABASE_URL" in said


def test_a_backup_that_agrees_with_the_receiver_says_what_to_switch(
    told: None, run: Run, tmp_path: Path, new_place: Place
) -> None:
    assert run("backup", tmp_path / "monday")[0] == 0
    status, said, _ = run("restore", tmp_path / "monday", "--into", new_place.into)
    assert status == 0
    lines = said.splitlines()
    assert lines[0].startswith("Restored: ")
    assert "Whole: checksum, states, tokens, counters and the record are as they were." in lines
    assert any("1. Stop every worker" in line for line in lines)


def test_a_killed_backup_leaves_nothing_under_its_name(
    told: None, real_database: RealDatabase, tmp_path: Path, settings: Any
) -> None:
    environ = {**real_database.environ, "SNACKOPS_PG_BIN": settings.PG_BIN}
    process = python("tests.backups.mortal", str(tmp_path), environ=environ)
    said, _ = process.communicate(timeout=120)
    ends = [tuple(map(int, line.split())) for line in said.splitlines()]
    assert ends[-1][1] == 0
    assert {status for _n, status in ends[:-1]} == {-9}
    assert len(ends) >= 8
    whole = [n for n, _status in ends if (tmp_path / f"backup-{n}").exists()]
    for n in whole:
        folder = tmp_path / f"backup-{n}"
        assert parse((folder / MANIFEST).read_bytes()).bytes == data_of(folder).stat().st_size
    assert 1 not in whole
    assert ends[-1][0] in whole
    assert whole == list(range(whole[0], ends[-1][0] + 1)), "a later kill left less"


def test_nothing_is_ever_overwritten(told: None, run: Run, tmp_path: Path, new_place: Place) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "folder", "link"):
        status, _, error = run("backup", tmp_path / name)
        assert (status, "nothing is ever overwritten" in error) == (2, True)
    assert run("backup", tmp_path / "no" / "such")[2].startswith("There is no folder")
    assert (tmp_path / "file").read_text() == "mine"
    assert run("backup", tmp_path / "monday")[0] == 0
    assert run("restore", tmp_path / "monday", "--into", new_place.into)[0] == 0
    status, _, error = run("restore", tmp_path / "monday", "--into", new_place.into)
    assert status == 2
    assert "never put over something" in error or "nothing is ever overwritten" in error


def test_a_folder_that_is_no_backup_is_one_sentence(db: None, run: Run, tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / MANIFEST).write_bytes(b"{}")
    for folder in ("odd", "missing"):
        status, said, error = run("restore", tmp_path / folder, "--into", tmp_path / "new")
        assert (status, said) == (2, "")
        assert error.count("\n") <= 1
    assert [path.name for path in tmp_path.iterdir()] == ["odd"]
