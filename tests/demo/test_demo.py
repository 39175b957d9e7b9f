"""The first of the two commands: started, used and stopped, as a stranger would."""

import json
import os
import re
import signal
import socket
from pathlib import Path

import pytest

from tests.demo.running import Demo, eventually

pytestmark = pytest.mark.timeout(170)
ORDERS = "id\tquantity\titem\n" + "".join(f"t-{n}\t{n}\tsnack\n" for n in range(1, 61))


def numbers_of(page: str) -> list[int]:
    """The four large figures of the overview: in quarantine, waiting, being delivered, delivered."""
    return [int(text.replace(",", "")) for text in re.findall(r'class="figure-number"[^>]*>([\d,]+)<', page)]


def settled(demo: Demo) -> bool:
    """No order is on its way."""
    return not demo.sql("SELECT 1 FROM jobs WHERE state IN ('pending', 'leased') LIMIT 1")


def test_the_overview_says_what_sql_says_and_the_command_line_prints_the_same(tmp_path: Path) -> None:
    with Demo(tmp_path, "--no-feed").up() as demo:
        accepted = demo.manage("enqueue", "-", "--format", "tsv", "--json", stdin=ORDERS)
        assert json.loads(accepted)["accepted"] == 60
        eventually(lambda: settled(demo), "every order delivered or in quarantine")
        state = dict(demo.sql("SELECT state, count(*) FROM jobs GROUP BY state"))
        assert state["dead"] > 14, "the past alone would be 14: the receiver refuses some of the new ones too"
        client = demo.sign_in("olivia")
        page = client.get("/").text
        assert numbers_of(page) == [state["dead"], 0, 0, state["done"]]
        for reason, code, n in demo.sql("SELECT reason, code, count(*) FROM jobs WHERE state = 'dead' GROUP BY 1, 2"):
            assert re.search(rf"<code>{code}</code>.*?>{n}</a> / {state['dead']} ", page, re.S), (reason, code, n)
        told = json.loads(demo.manage("quarantine", "--json"))
        assert told["states"]["dead"] == state["dead"]
        assert told["states"]["done"] == state["done"]
        dead_id = demo.sql("SELECT id FROM jobs WHERE state = 'dead' ORDER BY changed_at_ms DESC LIMIT 1")[0][0]
        assert dead_id in client.get("/quarantine/?sort=newest").text
        assert client.get(f"/orders/{dead_id}/").status_code == 200
        client.close()
        assert demo.stop() == 0, demo.output


def test_a_killed_child_gets_a_sentence_and_a_successor_and_the_end_leaves_nobody(tmp_path: Path) -> None:
    with Demo(tmp_path, "--no-feed", "--workers=1").up() as demo:
        before = demo.children()
        os.kill(before[0], signal.SIGKILL)
        eventually(lambda: "was killed by signal 9: starting it again" in demo.output, "the sentence")
        eventually(lambda: len(demo.children()) == len(before) and before[0] not in demo.children(), "the successor")
        born = demo.children()
        assert demo.stop(signal.SIGTERM) == 0, demo.output
        assert not [pid for pid in born if Path(f"/proc/{pid}").exists()]
    passwords = demo.password("olivia")
    with Demo(tmp_path, "--no-feed", "--workers=1").up() as again:
        assert again.password("olivia") != passwords, "passwords are made anew at every start"
        assert again.sql("SELECT count(*) FROM jobs WHERE id LIKE 'old-%'") == [(14,)], "the same data goes on"
        with Demo(tmp_path) as second:
            assert second.process.wait(timeout=60) == 2
            eventually(lambda: "A demo is running with the data in" in second.output, "the sentence")
        assert again.stop() == 0


def test_a_taken_port_gets_a_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with Demo(tmp_path, port=taken.getsockname()[1]) as demo:
            assert demo.process.wait(timeout=60) == 2
            eventually(lambda: "choose another with --port." in demo.output, "the sentence")
    assert "Traceback" not in demo.output


def test_the_sample_flows_some_die_and_the_repair_is_told_to_the_receiver(tmp_path: Path) -> None:
    with Demo(tmp_path).up() as demo:
        eventually(
            lambda: demo.sql("SELECT count(*) FROM jobs WHERE state = 'done' AND id LIKE 'o%-%'")[0][0] > 100,
            "a hundred of the sample's orders delivered",
        )
        eventually(
            lambda: demo.sql("SELECT 1 FROM jobs WHERE state = 'dead' AND reason = 'exhausted' LIMIT 1"),
            "an order that gave up",
        )
        assert "repaired" in demo.manage("demo", "--repair", f"--receiver-port={demo.receiver_port}")
        assert demo.stop() == 0, demo.output
