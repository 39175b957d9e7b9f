"""kill -9 at every statement of a worker's moves for many orders at once: all of it, or nothing (F02, F03, F13)."""

import pytest

from queue_app.models import Gate, Job
from queue_app.services import queue
from queue_app.store import database
from tests.engine.invariants import check_all
from tests.engine.mortals import mortals
from tests.engine.rows import DAY, declare


@pytest.fixture
def every_point(real_database):
    """`every_point(move, prepare, changed)`: a death at point 1, 2, ... until one lives, each in a story of its own."""
    process = mortals(real_database.environ)

    def run(move, prepare, changed):
        seen = []
        for point in range(1, 300):
            status, answer = process.die("tests.faults.mortal", move, point, prepare(point))
            seen.append(changed(point))
            if status == 0:
                break
        assert seen[-2:] == [True, True], "the death after the commit, and the life"
        assert seen.count(False) >= 3, "no death inside the move"
        assert seen == sorted(seen), "once committed, later points are committed too"
        check_all()
        return answer

    return run


def three_leased(point):
    ids = [f"n{point}-{place}" for place in range(3)]
    queue.enqueue_many([{"id": one, "quantity": 1} for one in ids])
    found = queue.claim("w", limit=3)
    assert sorted(lease.id for lease in found) == ids
    return ids


@pytest.mark.parametrize(
    ("move", "ends"), [("finish_many", "done"), ("release_many", "pending"), ("renew_many", "leased")]
)
def test_a_move_of_many_is_all_or_nothing(every_point, move, ends):
    declare(lease_ms=600_000)

    def prepare(point):
        Job.objects.filter(state="pending").update(available_at=database.now_ms() + DAY)
        some = [[one, 1] for one in three_leased(point)]
        longer = {"lease_ms": 900_000} if move == "renew_many" else {}
        return {"some": [[*one, "ok"] for one in some] if move == "finish_many" else some, **longer}

    def changed(point):
        rows = Job.objects.filter(pk__startswith=f"n{point}-")
        longer = rows.filter(lease_until__gt=database.now_ms() + 700_000).count()
        n = longer if move == "renew_many" else rows.filter(state=ends).count()
        assert n in (0, 3)
        assert rows.filter(token=1).count() == 3
        return n == 3

    assert every_point(move, prepare, changed) == [True] * 3
    all_can_end()


def test_F13_killed_while_renewing_the_lease_is_as_before_or_longer_and_within_one_lease_of_the_deadline(every_point):  # noqa: N802
    declare(lease_ms=600_000)
    before, most = {}, {}

    def prepare(point):
        some = [[one, 1] for one in three_leased(point)]
        over = database.now_ms() - 1_000  # the deadline passes while a worker still has the orders
        mine = Job.objects.filter(pk__startswith=f"n{point}-")
        mine.update(deadline=over)
        before[point] = list(mine.values_list("lease_until", flat=True).order_by("pk"))
        most[point] = [over + 900_000] * 3
        return {"some": some, "lease_ms": 900_000}

    def changed(point):
        mine = Job.objects.filter(pk__startswith=f"n{point}-")
        until = list(mine.values_list("lease_until", flat=True).order_by("pk"))
        assert until in (before[point], most[point])
        assert set(mine.values_list("state", "token", "owner")) == {("leased", 1, "w")}
        return until == most[point]

    assert every_point("renew_many", prepare, changed) == [True] * 3
    all_can_end()


def all_can_end():
    """Faults off: what was left can be handed out and ends, and the tables are whole."""
    Job.objects.filter(state="pending").update(available_at=database.now_ms())
    for one in [*Job.objects.filter(state="leased"), *queue.claim("w9", limit=1_000)]:
        assert queue.finish(one.id, one.token, "ok")
    assert not Job.objects.exclude(state="done").exists()
    check_all()


def test_what_a_rate_hands_out_and_what_it_spends_come_together(every_point):
    declare(delivery_rate_mj=10)

    def prepare(point):
        Job.objects.filter(state="pending").update(available_at=database.now_ms() + DAY)
        Gate.objects.all().delete()
        queue.enqueue(f"n{point}", 1)
        return {}

    def changed(point):
        leased = Job.objects.get(pk=f"n{point}").state == "leased"
        spent = Gate.objects.filter(queue="snacks", level_uj__lt=1_000_000).exists()
        assert leased == spent
        return leased

    assert every_point("claim", prepare, changed)[0][1] == 1
    declare()
    all_can_end()
