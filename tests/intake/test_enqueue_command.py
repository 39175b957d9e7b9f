"""`manage.py enqueue` on a real database: what is in afterwards, what is printed, and the exit status."""

import io
import json

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection

from queue_app.management.commands import enqueue
from queue_app.policy.columns import SAMPLE_COLUMNS
from queue_app.services.intake import SAMPLE_FILE

pytestmark = pytest.mark.django_db


def run(*args, status=0):
    """(standard output, standard error) of a run that ended with this status."""
    out, err = io.StringIO(), io.StringIO()
    ended = 0
    try:
        call_command("enqueue", *args, stdout=out, stderr=err)
    except SystemExit as end:
        ended = end.code
    assert ended == status, err.getvalue()
    return out.getvalue(), err.getvalue()


def rows(columns="id, quantity"):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM jobs ORDER BY seq")
        return cursor.fetchall()


@pytest.fixture
def file_of(tmp_path):
    def write(name, *lines):
        path = tmp_path / name
        path.write_bytes(b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines) + b"\n")
        return str(path)

    return write


def test_the_sample_goes_in_whole_and_a_second_time_changes_nothing():
    out, err = run(str(SAMPLE_FILE), "--sample")
    assert out == "4,622 order lines: 4,622 accepted, 0 duplicate, 0 conflicting, 0 rejected\n"
    assert err == ""
    first = rows("id, quantity, payload, state, seq, created_at_ms, changed_at_ms")
    assert len(first) == 4_622
    assert first[0][:2] == ("o1-1", 1)
    out, _ = run(str(SAMPLE_FILE), "--sample", "--json")
    assert json.loads(out) == {
        "accepted": 0, "complete": True, "conflicting": 0, "duplicate": 4_622, "lines": 4_622, "rejected": 0,
    }  # fmt: skip
    assert rows("id, quantity, payload, state, seq, created_at_ms, changed_at_ms") == first


@pytest.mark.parametrize("batch", ["1", "2", "500"])
def test_bad_and_conflicting_lines_are_named_and_the_good_ones_are_in(file_of, batch):
    path = file_of("x.csv", "id,quantity,item", "a,1,x", "b b,1,x", "c,0,x", "a,2,x", "a,1,x", b"d,1,\xff", "e,3,x")
    out, err = run(path, "--batch", batch, status=1)
    assert rows() == [("a", 1), ("e", 3)]
    assert out == "7 order lines: 2 accepted, 1 duplicate, 1 conflicting, 3 rejected\n"
    assert [line.partition(":")[0] for line in err.splitlines()] == ["line 3", "line 4", "line 5", "line 7"]
    assert "The id a is known with another" in err
    out, _ = run(path, "--batch", batch, status=1)
    assert out == "7 order lines: 0 accepted, 3 duplicate, 1 conflicting, 3 rejected\n"
    assert rows() == [("a", 1), ("e", 3)]


def test_the_same_orders_as_tsv_csv_and_json_lines_are_the_same_bodies(file_of):
    run(file_of("x.tsv", "id\tquantity\titem\torder_key", "a\t1\tsalsa\tk"))
    for path in (
        file_of("x.csv", '"order_key","item","id","quantity"', "k,salsa,a,1"),
        file_of("x.jsonl", '{"id":"a","quantity":1,"order_key":"k","item":"salsa"}'),
        file_of("y.jsonl", '{"id":"a","quantity":1,"order_key":"k","payload":{"item":"salsa"}}'),
    ):
        assert "1 duplicate" in run(path)[0]
    assert rows("payload, order_key, queue") == [('{"item":"salsa"}', "k", "snacks")]


def test_a_queue_that_is_not_declared_rejects_the_line_and_a_bad_name_the_whole_call(file_of):
    path = file_of("x.csv", "id,quantity,queue", "a,1,", "b,1,nowhere")
    _, err = run(path, status=1)
    assert err.startswith("line 3: ")
    assert rows() == [("a", 1)]
    with pytest.raises(CommandError, match="queue must be") as caught:
        run(path, "--queue", "No Queue")
    assert caught.value.returncode == 2


def test_standard_input_is_read_with_its_form_told_by_its_first_line(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"id":"a","quantity":1}\n{"id":"b","quantity":2}')))
    run("-")
    assert rows() == [("a", 1), ("b", 2)]


@pytest.mark.parametrize(
    ("lines", "args", "why"),
    [
        ([""], [], "It is empty."),
        (["id,amount", "a,1"], [], "lacks the column quantity"),
        (["id,quantity,x,x", "a,1,,"], [], "names the column 'x' twice"),
        (["id,quantity", "a,1"], ["--sample"], "lacks the column"),
        (["id,quantity", "a,1"], ["--batch", "0"], "--batch must be from 1 to 5,000."),
        (["id,quantity", "a,1"], ["--batch", "5001"], "--batch must be from 1 to 5,000."),
    ],
)
def test_what_cannot_be_read_at_all_is_status_2_and_one_sentence(file_of, lines, args, why):
    with pytest.raises(CommandError, match=why) as caught:
        run(file_of("x", *lines), *args)
    assert caught.value.returncode == 2
    assert rows() == []


@pytest.mark.parametrize("name", ["", "missing.tsv", "caf\u00e9/\udcff.tsv", "a\0b"])
def test_a_file_that_cannot_be_opened_is_status_2(tmp_path, name):
    with pytest.raises(CommandError, match=r"^Cannot read '") as caught:
        run(str(tmp_path / name))
    assert caught.value.returncode == 2
    assert str(caught.value).isascii()


def test_a_closed_standard_input_is_status_2(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(CommandError, match=r"Standard input is closed\.") as caught:
        run("-")
    assert caught.value.returncode == 2


def stop_at_second_batch(monkeypatch, error):
    real, calls = enqueue.queue.enqueue_many, []

    def take(orders):
        calls.append(len(orders))
        if len(calls) == 2:
            raise error
        return real(orders)

    monkeypatch.setattr(enqueue.queue, "enqueue_many", take)


def test_a_locked_database_ends_with_status_2_and_running_again_goes_on(file_of, monkeypatch):
    path = file_of("x.csv", "id,quantity", *(f"a{n},1" for n in range(5)))
    with monkeypatch.context() as patch:
        stop_at_second_batch(patch, OperationalError("database is locked"))
        out, err = run(path, "--batch", "2", "--json", status=2)
    assert "Stopped at line 4: the database was busy for too long." in err
    assert json.loads(out) == {
        "accepted": 2, "complete": False, "conflicting": 0, "duplicate": 0, "lines": 2, "rejected": 0,
    }  # fmt: skip
    assert rows() == [("a0", 1), ("a1", 1)]
    assert "3 accepted, 2 duplicate" in run(path)[0]


def test_ctrl_c_ends_with_130_and_says_what_is_in(file_of, monkeypatch):
    stop_at_second_batch(monkeypatch, KeyboardInterrupt())
    out, err = run(file_of("x.csv", "id,quantity", "a,1", "b,1"), "--batch", "1", status=130)
    assert err == "Interrupted; run it again to go on.\n"
    assert out == "1 order lines: 1 accepted, 0 duplicate, 0 conflicting, 0 rejected\n"


def test_a_payload_is_never_printed(file_of):
    bad = ["secret\0", "secret" * 3_000, "secret" * 12_000]
    path = file_of(
        "x.tsv", "id\tquantity\tsecret_column", *(f"a{n}\t1\t{text}" for n, text in enumerate(bad)), "b\t0\tsecret"
    )
    out, err = run(path, status=1)
    assert "4 rejected" in out
    assert "secret" not in out + err


def test_the_help_documents_every_column(capsys):
    with pytest.raises(SystemExit) as end:
        call_command("enqueue", "--help")
    assert end.value.code == 0
    text = capsys.readouterr().out
    for column in ("id", "quantity", "queue", "order_key", "max_attempts", "deadline_ms", "the rest"):
        assert f"\n  {column} " in text
    for word in (*SAMPLE_COLUMNS, "o{order_id}-{n}", "exit status: 0 "):
        assert word in text
