"""F14 to F17: a disk that is full, fails, or takes no writes. Nothing acknowledged is lost, nothing is half there, and the
same process goes on when the disk is well again.

By system calls that fail (strace), so at every write and every sync of a move, once for a moment and once for good; and
without strace by SQLite's own page limit and the process's limit for files. SNACKOPS_IO_STEP=1 looks at every call.
"""

import os
from collections import Counter

import pytest
from django.contrib.auth.models import Group, User
from django.db import OperationalError, connection
from django.test import Client

from queue_app.models import Failure, Job, Redrive
from queue_app.policy.rights import OPERATOR, TEAM_LEAD
from queue_app.receiver.ledger import Ledger
from queue_app.services import queue
from tests.backups.conftest import living_in_file, run
from tests.backups.test_sqlite_files import BROKEN, break_it, dropped, emptied
from tests.engine.invariants import check_all
from tests.engine.rows import LEASE, T, stand
from tests.faults.patient import WRITES, traceable

__all__ = ["dropped", "run"]
pytestmark = pytest.mark.django_db
BROKEN_FILES = [how for how in BROKEN if how is not emptied]  # SQLite calls an empty file an empty database
STEP = int(os.environ.get("SNACKOPS_IO_STEP", "16"))
NO_SPACE = "pwrite64:error=ENOSPC"
FAULTS = {
    "F14_full": NO_SPACE,
    "F16_broken": f"{WRITES}:error=EIO",
    "F16_unreadable": "pread64:error=EIO",
    "F17_read_only": f"{WRITES}:error=EROFS",
}
# SQLite's word for a page that cannot be read is that its file is malformed
ERRORS = ("OperationalError: ", "DatabaseError: database disk image is malformed")
BIG = {"item": "x" * 15_000}


def prepared(file, move):
    """An order ready for the move; the arguments of the move."""
    with living_in_file(file):
        lead = User.objects.create_user(f"lead-{Job.objects.count()}")
        lead.groups.add(Group.objects.get(name=TEAM_LEAD))
        one = f"o{Job.objects.count()}"
        if move == "enqueue":
            return one, {"id": one, "quantity": 7, "payload": BIG, "now_ms": T}
        queue.enqueue(one, 7, now_ms=T)
        *others, lease = queue.claim("w", limit=100, now_ms=T)
        assert all(queue.finish(other.id, other.token, "ok", now_ms=T) for other in others)
        assert lease.id == one
        if move == "finish":
            return one, {"id": one, "token": lease.token, "outcome": "permanent", "code": "http_422", "now_ms": T}
        queue.finish(one, lease.token, "permanent", code="http_422", now_ms=T)
        return one, {"id": one, "note": "INC-1", "approved_by": lead.pk, "now_ms": T}


BEFORE = {"enqueue": None, "finish": ("leased", "", "", 1, 1), "redrive": ("dead", "permanent", "http_422", 1, 1)}
AFTER = {
    "enqueue": ("pending", "", "", 0, 0),
    "finish": ("dead", "permanent", "http_422", 1, 1),
    "redrive": ("pending", "", "", 0, 1),
}
DONE = {"enqueue": "accepted", "finish": True, "redrive": "redriven"}
AGAIN = {"enqueue": "duplicate", "finish": False, "redrive": "NotDead: Order {} is not in quarantine."}


def stands(file, one, move):
    """Whether the order stands as after the move; the tables must be whole either way."""
    with living_in_file(file):
        check_all()
        now = stand(one) if Job.objects.filter(pk=one).exists() else None
        assert now in (BEFORE[move], AFTER[move])
        rows = (Failure if move == "finish" else Redrive).objects.filter(job_id=one).count()
        if move != "enqueue":
            assert rows == (now == AFTER[move])
        return now == AFTER[move]


@pytest.mark.parametrize("move", ["enqueue", "finish", "redrive"])
@pytest.mark.parametrize("for_good", [False, True], ids=["for_a_moment", "for_good"])
@pytest.mark.parametrize("fault", FAULTS)
def test_F14_F16_F17_a_disk_that_fails_at_any_call_leaves_the_old_or_the_new(patient, file, move, fault, for_good):  # noqa: N802
    if sentence := traceable():
        print(sentence)
        return
    seen = Counter()
    first_call = 1 + 5 * list(FAULTS).index(fault) % STEP  # others for each fault
    for at in range(first_call, 300, STEP):
        one, arguments = prepared(file, move)
        first, second, last = patient.does(
            file, [move, arguments], [move, arguments], ["repair", {}], [move, arguments],
            inject=f"{FAULTS[fault]}:when={at}{'+' if for_good else ''}",
        )  # fmt: skip
        assert stands(file, one, move)
        answers = [first, second, last]
        told = [answer for answer in answers if not str(answer).startswith(ERRORS)]
        again = AGAIN[move].format(one) if isinstance(AGAIN[move], str) else AGAIN[move]
        assert answers[-1] in (DONE[move], again), "well again, and the same process goes on"
        assert told[0] in (DONE[move], again)  # `again` first: the error came when all was written, an unknown outcome
        assert told[1:] == [again] * (len(told) - 1), "told as done once"
        seen[first == DONE[move]] += 1
        if first == DONE[move]:
            break
        assert not for_good or second not in (DONE[move], again), "it fails for good, and something was told as done"
    assert seen[False] >= 1, "no call failed"
    assert seen[True], "the move has no end"


@pytest.mark.usefixtures("dropped")
@pytest.mark.parametrize("how", BROKEN_FILES)
def test_F18_on_a_broken_file_every_command_ends_with_one_sentence_and_writes_nothing(file, run, tmp_path, how):  # noqa: N802
    with living_in_file(file):
        queue.enqueue_many([{"id": f"o{n}", "quantity": 1, "payload": BIG} for n in range(20)], now_ms=T)
    left = break_it(file, how)
    (tmp_path / "orders.jsonl").write_text('{"id": "new", "quantity": 1}\n')
    with living_in_file(file):
        for command in (
            ["worker", "--until-idle", "--owner", "w"], ["enqueue", tmp_path / "orders.jsonl"], ["housekeeping"],
            ["counters", "check"], ["queue", "show", "snacks"], ["redrive", "list"],
        ):  # fmt: skip
            status, said, error = run(*command)
            assert status in (1, 2), (command, status, said, error)
            assert "Traceback" not in said + error
            assert len((said + error).strip().splitlines()) <= 3, (command, said, error)
    assert file.read_bytes() == left


def test_F15_a_full_disk_after_the_receiver_answered_brings_a_second_delivery_and_one_effect(patient, file, tmp_path):  # noqa: N802
    if sentence := traceable():
        print(sentence)
        return
    ledger = Ledger(str(tmp_path / "receiver.sqlite3"), now_ms=lambda: T)
    one, arguments = prepared(file, "finish")
    assert ledger.apply(one, 7).outcome == "applied"
    (answer,) = patient.does(file, ["finish", {**arguments, "outcome": "ok", "code": ""}], inject=f"{NO_SPACE}:when=1+")
    assert answer.startswith("OperationalError")
    with living_in_file(file):
        assert stand(one) == ("leased", "", "", 1, 1)
        (lease,) = queue.claim("w2", now_ms=T + LEASE)
        assert (lease.id, lease.attempt, lease.token) == (one, 2, 2)
        assert ledger.apply(one, lease.quantity).outcome == "duplicate"
        assert queue.finish(one, 2, "ok", now_ms=T + LEASE)
        check_all()
    assert ledger.page(None, 9).totals == {"keys": 1, "stock": 7, "writes": 1, "requests": 2}
    ledger.close()


def test_F14_at_sqlites_own_limit_nothing_of_a_batch_is_there_and_reading_goes_on(file):  # noqa: N802
    with living_in_file(file):
        queue.enqueue("first", 1, now_ms=T)
        orders = [{"id": f"o{n}", "quantity": 1, "payload": BIG} for n in range(6)]
        refused = 0
        for room in range(0, 60, 4):
            _pages(room)
            try:
                assert queue.enqueue_many(orders, now_ms=T) == ["accepted"] * 6
                break
            except OperationalError as error:
                refused += "full" in str(error)
            assert set(Job.objects.values_list("id", flat=True)) == {"first"}
            assert queue.enqueue("first", 1, now_ms=T) == "duplicate"
            check_all()
        assert refused >= 3
        assert Job.objects.count() == 7
        check_all()


def _pages(room):
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA page_count")
        count = cursor.fetchone()[0]
        cursor.execute(f"PRAGMA max_page_count = {count + room}")


@pytest.mark.parametrize("room", [0, 1, 3, 7])
def test_F16_a_limit_for_files_is_an_error_and_after_it_the_same_process_goes_on(patient, file, room):  # noqa: N802
    with living_in_file(file):
        queue.enqueue("first", 1, now_ms=T)
    orders = [{"id": f"o{n}", "quantity": 1, "payload": BIG} for n in range(6)]
    refused, read, accepted = patient.does(
        file, ["enqueue_many", {"orders": orders}], ["states", {}], ["repair", {}], ["enqueue_many", {"orders": orders}],
        limit=file.stat().st_size + room * 4_096,
    )  # fmt: skip
    assert refused.startswith("OperationalError: "), refused
    assert read == {"first": "pending"}
    assert accepted == ["accepted"] * 6
    with living_in_file(file):
        assert Job.objects.count() == 7
        check_all()


def test_F17_a_file_that_takes_no_writes_is_read_and_a_change_says_why(patient, file):  # noqa: N802
    with living_in_file(file):
        queue.enqueue("first", 1, now_ms=T)
    for one in (file, *file.parent.glob("*-journal")):
        one.chmod(0o444)
    for folder in (file.parent, *file.parent.parents):
        if folder == file.parent or folder.name.startswith(("pytest-", "popen-", "test_")):
            folder.chmod(0o755)
    read, refused, still = patient.does(
        file, ["states", {}], ["enqueue", {"id": "second", "quantity": 1}], ["states", {}], nobody=True
    )
    assert read == still == {"first": "pending"}
    assert refused == "OperationalError: attempt to write a readonly database"


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_F17_pages_are_read_from_a_database_that_takes_no_writes_and_a_form_says_why(file):  # noqa: N802
    with living_in_file(file):
        queue.enqueue("first", 1, now_ms=T)
        oda = User.objects.create_user("oda")
        oda.groups.add(Group.objects.get(name=OPERATOR))
        client = Client(raise_request_exception=False)
        client.force_login(oda, backend="django.contrib.auth.backends.ModelBackend")
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA query_only = ON")
        seen = {path: client.get(path).status_code for path in ("/", "/quarantine/", "/orders/first/", "/redrives/")}
        assert set(seen.values()) == {200}, seen
        change = {"job": "first", "note": "INC-1", "finding": "looking", "as_of": str(T), "comment": ""}
        refused = client.post("/investigations/new/", change)
        assert refused.status_code == 503
        assert "Nothing was changed" in refused.content.decode()
        check_all()
