"""`manage.py enqueue` as a process: pipes that close, no locale, a terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "manage.py", "enqueue"]


@pytest.fixture
def enqueue(real_database):
    def run(*args, **named):
        environ = {**real_database.environ, **named.pop("environ", {})}
        return subprocess.run([*COMMAND, *args], cwd=ROOT, env=environ, timeout=120, check=False, **named)

    return run


ORDERS = "id,quantity,item\na,1,caf\u00e9\nb b,1,x\n".encode()


def test_a_reader_that_left_ends_it_quietly_and_the_orders_are_in(enqueue):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = enqueue("-", input=ORDERS, stdout=writing, stderr=subprocess.PIPE)
        silent = enqueue("-", input=ORDERS, stdout=writing, stderr=writing)
    finally:
        os.close(writing)
    assert ended.returncode == silent.returncode == 1
    assert ended.stderr.decode().startswith("line 3: The id must be")
    assert len(ended.stderr.splitlines()) == 1
    again = enqueue("-", input=ORDERS, capture_output=True)
    assert b"0 accepted, 1 duplicate, 0 conflicting, 1 rejected" in again.stdout


@pytest.mark.parametrize(
    ("redirect", "complaint"), [(">&-", []), (">/dev/full", [b"The count cannot be printed: No space left on device."])]
)
def test_an_output_that_cannot_be_written_loses_no_order(real_database, redirect, complaint):
    command = ["sh", "-c", f'exec "$@" {redirect}', "sh", *COMMAND, "-"]
    ended = subprocess.run(
        command, cwd=ROOT, env=real_database.environ, input=ORDERS, stderr=subprocess.PIPE, timeout=120, check=False
    )
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[1:] == complaint
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM jobs")
        assert cursor.fetchall() == [("a",)]


def test_utf_8_is_read_without_a_locale(enqueue):
    environ = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = enqueue("-", input=ORDERS, capture_output=True, environ=environ)
    assert b"1 accepted, 0 duplicate, 0 conflicting, 1 rejected" in ended.stdout
    assert ended.returncode == 1


def test_a_missing_file_is_one_sentence_and_status_2(enqueue, tmp_path):
    ended = enqueue(str(tmp_path / "missing.tsv"), capture_output=True)
    assert ended.returncode == 2
    assert ended.stdout == b""
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stderr.rstrip().endswith(b"No such file or directory.")


def test_progress_is_shown_on_a_terminal_only(enqueue):
    ours, theirs = pty.openpty()
    try:
        ended = enqueue("-", "--batch", "1", input=ORDERS, stdout=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        shown = os.read(ours, 65_536).decode()
    finally:
        os.close(ours)
    assert "\r\x1b[K1 order lines: 1 accepted" in shown
    assert shown.index("1 order lines") < shown.index("line 3: The id must be")
    assert shown.endswith("\r\x1b[K")
    assert ended.stdout.decode() == "2 order lines: 1 accepted, 0 duplicate, 0 conflicting, 1 rejected\n"
    assert b"\x1b" not in enqueue("-", input=ORDERS, capture_output=True).stderr
