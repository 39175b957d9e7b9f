"""The file of the database: never made anew under a running process, never on a network file system (faults F21, F22)."""

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from queue_app import checks, conf
from queue_app.policy.mounts import filesystem_of, shared_over_a_network
from tests.conftest import BASE_DIR

MOUNTS = r"""
/dev/sda1 / ext4 rw,relatime 0 0
proc /proc proc rw 0 0
server:/export /srv nfs4 rw,vers=4.2 0 0
/dev/sdb1 /srv/local xfs rw 0 0
//nas/share /mnt/my\040share cifs rw 0 0
broken
/dev/sdc1 /mnt/twice nfs rw 0 0
/dev/sdd1 /mnt/twice ext4 rw 0 0
user@host:/ /home/me/away fuse.sshfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind", "network"),
    [
        ("/var/data/x.sqlite3", "ext4", False),
        ("/srv/x.sqlite3", "nfs4", True),
        ("/srv", "nfs4", True),
        ("/srvx/x.sqlite3", "ext4", False),
        ("/srv/local/x.sqlite3", "xfs", False),
        ("/mnt/my share/x.sqlite3", "cifs", True),
        ("/mnt/twice/x", "ext4", False),
        ("/home/me/away/x", "fuse.sshfs", True),
    ],
)
def test_the_longest_mount_point_tells_the_file_system(path, kind, network):
    assert filesystem_of(path, MOUNTS) == kind
    assert shared_over_a_network(kind) == network


def test_without_a_list_nothing_is_claimed():
    assert filesystem_of("/x", "") == ""
    assert not shared_over_a_network("")


def test_a_start_on_a_network_file_system_is_refused_in_one_sentence(monkeypatch, tmp_path):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda1 / ext4 rw 0 0\nserver:/export {tmp_path} nfs4 rw 0 0\n")
    monkeypatch.setattr(checks, "MOUNTS", mounts)
    monkeypatch.setattr(conf, "sqlite_file", lambda: tmp_path / "x.sqlite3")
    (error,) = checks.database_is_at_home()
    assert (error.id, error.is_serious()) == ("queue_app.E001", True)
    assert "lies on a network file system (nfs4)" in error.msg
    monkeypatch.setattr(conf, "sqlite_file", lambda: Path("/elsewhere/x.sqlite3"))
    assert checks.database_is_at_home() == []
    monkeypatch.setattr(conf, "sqlite_file", lambda: None)
    assert checks.database_is_at_home() == []


# --- gone under a running process -----------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def migrated(tmp_path_factory):
    """A SQLite database of its own, whatever the tests run on, and the environment of its processes."""
    folder = tmp_path_factory.mktemp("gone")
    environ = {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{folder / 'a.sqlite3'}",
        "SNACKOPS_DATA": str(folder),
        "SNACKOPS_RECEIVER_URL": "http://127.0.0.1:9",
        "DJANGO_SETTINGS_MODULE": "snackops.settings",
    }
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], env=environ, cwd=BASE_DIR, check=True, timeout=120)
    return folder, environ


def wait_for(what, seconds=30):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


@pytest.mark.parametrize("how", ["deleted", "renamed"])
def test_a_worker_whose_database_goes_makes_no_new_one(migrated, how):
    folder, environ = migrated
    path, kept, log = folder / "a.sqlite3", folder / "kept.sqlite3", folder / f"{how}.log"
    shutil.copy(path, kept)  # nobody is in it yet
    with log.open("w") as errors:
        command = [sys.executable, "manage.py", "worker", "--owner", how]
        worker = subprocess.Popen(command, env=environ, cwd=BASE_DIR, stderr=errors)
    try:
        wait_for(lambda: lives(path, how))
        if how == "deleted":
            path.unlink()
        else:
            path.rename(kept)
        wait_for(lambda: log.read_text().count("database_refuses") >= 2)
        assert worker.poll() is None, "trouble with the database never ends it"
        assert not path.exists()
    finally:
        worker.kill()
        worker.wait()
        if kept.exists():
            kept.replace(path)


def lives(path, name):
    """Whether this worker has said that it lives."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute("SELECT 1 FROM processes WHERE name = ?", [name]).fetchone()
    finally:
        connection.close()


def test_a_process_that_lived_in_a_database_refuses_to_begin_an_empty_one(migrated):
    code = """
import django, os, sys; django.setup()
from django.db import OperationalError, connection
from queue_app.services import queue
queue.claim("w")
os.rename(sys.argv[1], sys.argv[1] + ".away")
try:
    for attempt in range(2):
        try:
            queue.enqueue("a", 1)
        except OperationalError as error:
            print(error)
        connection.close()
    print(os.path.exists(sys.argv[1]))
finally:
    os.rename(sys.argv[1] + ".away", sys.argv[1])
print(queue.enqueue("a", 1))
"""
    folder, environ = migrated
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder / "a.sqlite3")], env=environ, cwd=BASE_DIR, capture_output=True,
        text=True, check=True, timeout=60,
    )  # fmt: skip
    first, second, exists, answer = done.stdout.splitlines()
    assert first in ("disk I/O error", "attempt to write a readonly database")
    assert "unable to open" in second
    assert (exists, answer) == ("False", "accepted")
