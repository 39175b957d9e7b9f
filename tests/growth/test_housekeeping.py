"""Done orders leave when their queue's time is over, and nothing else ever does (fault G20)."""

import json
import os
import stat
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queue_app.models import AuditEvent, Failure, Job, Plan, Presence, Redrive, Tombstone
from queue_app.policy import retention
from queue_app.policy.bodies import body_digest
from queue_app.policy.errors import Conflict
from queue_app.policy.retention import archive_line, done_before, next_bite
from queue_app.reads.figures import figures
from queue_app.reads.plan_items import plan_items
from queue_app.services import housekeeping, looks, queue
from queue_app.services.verification import verify
from queue_app.store import places
from tests.growth.stories import age, buried, deliver, keep, there
from tests.redrive.story import approved, ask, die, frozen, run, work


def waits_for_nobody(_seconds):
    return False


def remove(name=None, **more):
    return housekeeping.remove_round(name, wait=waits_for_nobody, **more)


def command(capsys, *arguments):
    call_command("housekeeping", *arguments, "--json")
    return json.loads(capsys.readouterr().out)


# --- the rule -------------------------------------------------------------------------------------------------------
def test_a_queue_without_a_rule_keeps_for_ever_and_none_keeps_less_than_a_minute():
    assert done_before({"a": None, "b": 0, "c": 90_000}, 1_000_000) == {"b": 940_000, "c": 910_000}


@pytest.mark.parametrize(
    ("size", "held_ms", "then"),
    [(25, 0, 50), (400, 7, 500), (100, 15, 100), (100, 30, 50), (500, 10_000, 25), (25, 1, 50)],
)
def test_a_bite_follows_how_long_the_lock_was_held(size, held_ms, then):
    assert next_bite(size, held_ms) == then


# --- what goes and what stays ---------------------------------------------------------------------------------------
def test_only_done_orders_of_their_time_go_and_each_has_a_tombstone(clock, db):
    keep(30)
    keep(None, "drinks")
    deliver(["a", "b"])
    deliver(["d"], "drinks")
    dead = die(2)
    age(clock, 31)
    deliver(["young"])
    queue.enqueue("waiting", 1)
    queue.enqueue("leased", 1, queue="drinks")
    queue.claim("w", queue="drinks")
    done = remove()
    assert dict(done.removed) == {"snacks": 2}
    assert buried() == {"a", "b"}
    assert there() == {"d", "young", "waiting", "leased", *dead}
    assert Failure.objects.count() == len(dead)
    stone = Tombstone.objects.get(pk="a")
    assert stone.body_digest == body_digest("snacks", 3, "{}", "")
    assert (stone.quantity, stone.removed_at_ms, stone.removed_at_ms - stone.done_at_ms) == (
        3,
        clock.now,
        31 * 86_400_000,
    )


def test_a_removed_id_answers_duplicate_or_conflict_and_a_late_finish_is_refused(clock, db):
    keep(1)
    queue.enqueue("a", 3, payload={"x": 1})
    (lease,) = queue.claim("w")
    queue.finish("a", lease.token, "ok")
    age(clock, 2)
    remove()
    assert queue.enqueue("a", 3, payload={"x": 1}) == "duplicate"
    with pytest.raises(Conflict):
        queue.enqueue("a", 3)
    assert queue.finish("a", lease.token, "ok") is False
    assert there() == set()


def test_the_figures_follow(clock, db):
    keep(1)
    deliver(["a", "b", "c"])
    age(clock, 2)
    remove()
    assert figures(clock.now).states.done == 0


def test_what_an_open_redrive_or_an_investigation_refers_to_stays(clock, operator, team_lead):
    keep(1)
    looked, held = die(1, prefix="looked"), die(2, prefix="held")
    plan = approved(operator, team_lead)
    looks.record(operator, "job", "INC-2", "looking", job_id=looked[0])
    run(plan, clock)
    assert work() == 3
    age(clock, 2)
    Plan.objects.filter(pk=plan.pk).update(sealed_at_ms=None)
    assert Plan.objects.get().state == "ended"
    assert dict(remove().removed) == {}, "the outcomes are not sealed"
    Plan.objects.filter(pk=plan.pk).update(sealed_at_ms=clock.now)
    assert dict(remove().removed) == {"snacks": 2}
    assert (there(), buried()) == (set(looked), set(held))


@pytest.mark.parametrize("state", ["freezing", "proposed", "approved", "running", "paused", "halted"])
def test_an_item_or_a_hold_of_an_open_plan_is_enough(clock, operator, state):
    keep(1)
    die(1)
    plan = frozen(ask(operator))
    # as a redrive of another way would
    Job.objects.filter(pk="o1").update(state="pending", reason="", code="", attempts=0, redriven=1)
    assert work() == 1
    age(clock, 2)
    Plan.objects.filter(pk=plan.pk).update(state=state, approved_rate_mj=plan.rate_mj)
    assert remove().bites == 1
    assert there() == {"o1"}


def test_the_result_of_an_old_batch_stays_readable(clock, client, as_user, operator, team_lead):
    keep(1)
    ids = die(5)
    plan = approved(operator, team_lead)
    run(plan, clock)
    work()
    Plan.objects.filter(pk=plan.pk).update(sealed_at_ms=clock.now)
    age(clock, 2)
    remove()
    assert there() == set()
    assert [(line.job_id, line.outcome) for line in plan_items(plan.pk)] == [(one, "done") for one in ids]
    as_user(client, operator)
    for address in (f"/redrives/{plan.pk}/", f"/redrives/{plan.pk}/orders/"):
        assert client.get(address).status_code == 200, address
    assert b"o3" in client.get(f"/redrives/{plan.pk}/orders/").content
    assert (Redrive.objects.count(), Failure.objects.count()) == (5, 5)
    assert verify().whole


def test_a_round_goes_on_where_the_last_one_stopped_and_begins_anew_after_its_end(clock, db, monkeypatch):
    monkeypatch.setattr(retention, "BITE", (2, 2))
    monkeypatch.setattr(housekeeping, "BITE", (2, 2))
    keep(1)
    deliver([f"a{k}" for k in range(5)])
    age(clock, 2)
    turns = iter([False, True])
    assert remove(stopped=lambda: next(turns)).removed["snacks"] == 2
    assert places.read(places.RETENTION) > 0
    assert remove().removed["snacks"] == 3
    assert places.read(places.RETENTION) == 0


def test_the_walk_ends_where_nothing_can_be_old_enough(clock, db, monkeypatch):
    monkeypatch.setattr("queue_app.store.done_jobs.LOOK", 3)
    keep(1)
    deliver([f"a{k}" for k in range(3)])
    age(clock, 2)
    deliver([f"b{k}" for k in range(30)])
    assert remove().bites == 2


def test_one_event_a_round_and_queue_says_that_orders_were_removed(clock, db, monkeypatch):
    monkeypatch.setattr(housekeeping, "BITE", (2, 2))
    monkeypatch.setattr(retention, "BITE", (2, 2))
    keep(1)
    keep(1, "drinks")
    deliver([f"a{k}" for k in range(5)])
    deliver(["d"], "drinks")
    age(clock, 2)
    remove()
    events = AuditEvent.objects.filter(action="remove_done").order_by("seq")
    assert [event.target for event in events] == ["queue:snacks", "queue:drinks"]
    assert json.loads(events[0].detail) == {"archived": False, "done_before_ms": clock.now - 86_400_000}


def test_a_recount_keeps_removals_off(clock, db):
    keep(1)
    deliver(["a"])
    age(clock, 2)
    places.keep_off(places.RECOUNT, clock.now + 1_000)
    assert remove().kept_off
    assert there() == {"a"}
    clock.advance(1_000)
    remove()
    assert there() == set()


def test_looking_costs_the_same_queries_however_many_go(clock, db):
    keep(1)
    deliver([f"a{k}" for k in range(200)])
    age(clock, 2)
    before = done_before(housekeeping.rules(), clock.now)
    numbers = []
    for size in (20, 150):
        with CaptureQueriesContext(connection) as asked:
            housekeeping.remove_bite(before, 0, size)
        numbers.append(sum("INSERT INTO tombstones" not in one["sql"] for one in asked))
    assert len(there()) == 30
    assert numbers[1] <= numbers[0] <= 22


# --- the command ----------------------------------------------------------------------------------------------------
def test_the_archive_is_its_owners_own_and_holds_every_removed_order(clock, db, tmp_path, capsys):
    keep(1)
    deliver(["a", "b"], payload={"to": "雪", "n": 1.5}, order_key="k")
    age(clock, 2)
    path = tmp_path / "done.jsonl"
    told = command(capsys, "--archive", str(path))
    assert (told["removed"], told["kept_ms"]) == ({"snacks": 2}, {"snacks": 86_400_000})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["id"], line["payload"], line["order_key"]) for line in lines] == [
        ("a", {"to": "雪", "n": 1.5}, "k"),
        ("b", {"to": "雪", "n": 1.5}, "k"),
    ]
    deliver(["c"])
    age(clock, 2)
    with path.open("a") as file:
        file.write('{"id": "half')  # a crash in the middle of a line
    command(capsys, "--archive", str(path))
    assert json.loads(path.read_text().splitlines()[-1])["id"] == "c"


@pytest.mark.parametrize("what", ["others may read it", "a link", "no folder"])
def test_an_archive_that_is_not_safe_is_refused_before_anything_goes(clock, db, tmp_path, what):
    keep(1)
    deliver(["a"])
    age(clock, 2)
    path = tmp_path / "done.jsonl"
    if what == "others may read it":
        path.touch()
        path.chmod(0o644)
    if what == "a link":
        path.symlink_to(tmp_path / "elsewhere")
    if what == "no folder":
        path = tmp_path / "nowhere" / "done.jsonl"
    with pytest.raises(CommandError, match=r"archive .* cannot be written") as refused:
        call_command("housekeeping", archive=path)
    assert refused.value.returncode == 2
    assert there() == {"a"}


def test_an_archive_that_fails_keeps_the_orders(clock, db):
    keep(1)
    deliver(["a"])
    age(clock, 2)

    def full(_lines):
        raise OSError(28, os.strerror(28))

    with pytest.raises(OSError, match="No space"):
        remove(archive=full)
    assert (there(), buried()) == ({"a"}, set())


def test_a_dry_run_counts_and_changes_nothing(clock, db, capsys):
    keep(1)
    keep(None, "drinks")
    deliver(["a", "b"])
    age(clock, 2)
    assert command(capsys, "--dry-run")["would_remove"] == {"snacks": 2}
    call_command("housekeeping", "--dry-run")
    assert capsys.readouterr().out.splitlines() == ["drinks: keeps done orders for ever", "snacks: would remove 2"]
    assert there() == {"a", "b"}


def test_one_queue_alone_and_a_queue_that_is_not_declared(clock, db, capsys):
    keep(1)
    keep(1, "drinks")
    deliver(["a"])
    deliver(["d"], "drinks")
    age(clock, 2)
    assert command(capsys, "--queue", "drinks")["removed"] == {"drinks": 1}
    assert there() == {"a"}
    with pytest.raises(CommandError, match="No queue 'soup' is declared"):
        call_command("housekeeping", "--queue", "soup")


def test_what_gathers_by_itself_is_tidied_once_a_minute_over_all_processes(clock, operator):
    old = datetime.fromtimestamp(clock.now / 1_000, UTC) - timedelta(days=1)
    Session.objects.create(session_key="a", session_data="", expire_date=old)
    Session.objects.create(session_key="b", session_data="", expire_date=old + timedelta(days=3))
    Presence.objects.create(
        user=operator, queue="snacks", reason="permanent", code="", seen_at_ms=clock.now - 90_000_000
    )
    done = housekeeping.tidy_if_due()
    assert (done["sessions"], done["presences"]) == (1, 1)
    assert [one.session_key for one in Session.objects.all()] == ["b"]
    assert housekeeping.tidy_if_due() is None
    clock.advance(60_000)
    assert housekeeping.tidy_if_due()["sessions"] == 0


def test_an_archived_line_is_one_line_whatever_the_order_holds():
    body = '{"a":"line\\nbreak","b":1e400}'
    job = retention.DoneJob("a", 1, "snacks", "", 1, body, 1, 1, 0, 1, 0, None)
    line = archive_line(job)
    assert line.endswith("}\n")
    assert line.count("\n") == 1
    assert body in line
