"""`manage.py receiver` as a process: how it starts, refuses to start, is killed and ends."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.receiver.http_client import LIMIT_S, connect, get, post_order, requests_of, set_faults, together, totals

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def start(tmp_path):
    """Start the command; what still runs at the end of the test is killed."""
    environment = os.environ | {"SNACKOPS_DATA": str(tmp_path / "data"), "LANG": "C"}
    with contextlib.ExitStack() as stack:

        def run(*arguments, db="receiver.sqlite3"):
            command = [sys.executable, "manage.py", "receiver", "--db", str(tmp_path / db), *arguments]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            process = stack.enter_context(subprocess.Popen(command, cwd=ROOT, env=environment, **pipes))
            stack.callback(process.kill)
            return process

        yield run


def address(process):
    """The address that a started receiver prints."""
    line = process.stdout.readline()
    assert line.startswith("receiver listening on http://127.0.0.1:"), process.stderr.read()
    return line.split()[-1]


def ended(process):
    """Exit status and what was written to stderr, within the limit."""
    _, errors = process.communicate(timeout=LIMIT_S)
    return process.returncode, errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly_with_an_idle_and_a_waiting_peer(start, number):
    process = start("--port", "0", "--fault", '{"ids": ["slow"], "delay_ms": 60000}')
    url = address(process)
    with contextlib.closing(connect(url)) as idle:
        idle.request("GET", "/livez")
        idle.getresponse().read()

        def stop_when_committed():
            wait_until(lambda: totals(url)["keys"] == 1)
            process.send_signal(number)

        reply, _ = together(lambda: post_order(url, "slow", 7), stop_when_committed)
        assert reply.status == 201
        assert ended(process) == (0, "")


def wait_until(holds):
    limit = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < limit


def test_killed_after_the_commit_and_before_the_answer_it_keeps_the_effect_and_says_duplicate(start):
    process = start("--port", "0", "--fault", '{"ids": ["a"], "delay_ms": 60000, "first": 1}')
    url = address(process)

    def kill_when_committed():
        wait_until(lambda: totals(url)["keys"] == 1)
        process.kill()

    def post():
        with pytest.raises(ConnectionError):
            post_order(url, "a", 7)
        return "lost"

    assert together(post, kill_when_committed)[0] == "lost"
    assert process.wait(LIMIT_S) == -signal.SIGKILL
    url = address(start("--port", "0"))
    assert totals(url) == {"keys": 1, "stock": 7, "writes": 1, "requests": 1}
    assert post_order(url, "a", 7).document == {"ok": True, "id": "a", "duplicate": True}
    assert totals(url) == {"keys": 1, "stock": 7, "writes": 1, "requests": 2}


def test_two_processes_on_one_database_share_the_record(start):
    one, two = start("--port", "0"), start("--port", "0")
    urls = [address(one), address(two)]
    for number in range(20):
        replies = together(*[lambda url=url, number=number: post_order(url, f"o{number}", 3) for url in urls])
        assert sorted(reply.document["duplicate"] for reply in replies) == [False, True]
    assert totals(urls[0]) == totals(urls[1]) == {"keys": 20, "stock": 60, "writes": 20, "requests": 40}


def test_faults_come_from_a_file_and_from_options_and_demo_mode_makes_them_switchable(start, tmp_path):
    file = tmp_path / "faults.json"
    file.write_text(json.dumps({"faults": [{"ids": ["poison"], "status": 422}]}))
    arguments = ["--port", "0", "--faults", str(file), "--fault", '{"ids": ["a"], "status": 503}', "--demo"]
    process = start(*arguments)
    url = address(process)
    assert [fault["name"] for fault in get(url, "/faults").document["faults"]] == ["422", "503"]
    assert [post_order(url, order_id, 1).status for order_id in ("poison", "a", "b")] == [422, 503, 201]
    set_faults(url)
    process.terminate()
    assert ended(process) == (0, "")
    url = address(start(*arguments))
    assert [post_order(url, order_id, 1).status for order_id in ("poison", "a", "b")] == [201, 201, 200]
    assert requests_of(url) == {"poison": 2, "a": 2, "b": 2}


def test_a_taken_port_is_one_sentence_and_exit_status_2(start):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = str(taken.getsockname()[1])
        status, errors = ended(start("--port", port))
    assert status == 2
    assert errors == f"The receiver cannot listen on 127.0.0.1 port {port}: Address already in use.\n"


@pytest.mark.parametrize(
    ("arguments", "db", "sentence"),
    [
        ([], "", "is a directory."),
        ([], "no/such/receiver.sqlite3", "is in a directory that does not exist."),
        (["--host", "no such host"], "r.sqlite3", "The receiver cannot listen on no such host port 8081: "),
        (["--fault", "503"], "r.sqlite3", "Fault 1: it must be a JSON object."),
        (["--fault", "{"], "r.sqlite3", "The text is not JSON."),
        (["--faults", "/no/such/file"], "r.sqlite3", "The faults file cannot be read: No such file or directory."),
    ],
    ids=["directory", "no directory", "host", "fault", "json", "file"],
)
def test_what_cannot_start_says_why_in_one_sentence_with_exit_status_2(start, arguments, db, sentence):
    status, errors = ended(start(*arguments, db=db))
    assert status == 2
    assert errors.count("\n") == 1
    assert sentence in errors


@pytest.mark.parametrize("port", ["-1", "65536", "1e3", "٣", ""])
def test_a_port_that_is_none_is_refused_with_exit_status_2(start, port):
    status, errors = ended(start(f"--port={port}"))
    assert status == 2
    assert "a port is a whole number from 0 to 65535" in errors
