"""An order that failed thousands of times has a page that pages, and one that is gone still has a page (faults G13, F67)."""

import os
import re

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queue_app.models import Failure, Investigation, Job, LateFinish, Redrive
from queue_app.reads import life_steps
from queue_app.reads.life import life
from queue_app.reads.life_steps import TOKENS, Part
from queue_app.services import housekeeping, queue
from queue_app.views.words import step_mark, step_sentence
from tests.conftest import START_MS
from tests.growth.stories import age, deliver, keep
from tests.redrive.story import die

FAILURES = int(os.environ.get("GROWTH_FAILURES", "2300"))
NOW = START_MS + 10 * FAILURES * 1_000
EVERY = 70  # a redrive, and an investigation, after so many failures


def failed(n, person, *, job_id="long"):
    """An order of `n` failed tries, redriven now and then; each token has its failure, some more than that."""
    queue.enqueue(job_id, 1)
    at = [START_MS + token * 1_000 for token in range(n + 1)]
    outcome = ["permanent" if token % EVERY == 0 or token == n else "retry" for token in range(n + 1)]
    Failure.objects.bulk_create(
        Failure(
            job_id=job_id, token=token, attempt=1, at_ms=at[token], outcome=outcome[token], code="http_503", worker="w"
        )
        for token in range(1, n + 1)
    )
    redriven = range(EVERY, n, EVERY)
    Redrive.objects.bulk_create(
        Redrive(
            id=10**6 + token, link=10**6 + token, job_id=job_id, token=token, at_ms=at[token] + 500, note="INC-1",
            queue="snacks", reason="permanent", code="http_503", old_attempts=1, old_max_attempts=3,
            old_deadline=NOW, new_max_attempts=3, new_deadline=NOW, approved_by=person, hash="0" * 64,
        )
        for token in redriven
    )  # fmt: skip
    Investigation.objects.bulk_create(
        Investigation(at_ms=at[token] + 400, by=person, by_name="tom", scope="job", job_id=job_id, as_of_ms=at[token],
                      count=1, note=f"INC-{token}", finding="looking")
        for token in redriven
    )  # fmt: skip
    LateFinish.objects.bulk_create(
        LateFinish(job_id=job_id, token=token, at_ms=at[token] + 100, outcome="ok") for token in range(1, n, 11)
    )
    Job.objects.filter(pk=job_id).update(
        state="dead", reason="permanent", code="http_503", token=n, attempts=1, changed_at_ms=at[n]
    )


def walk(job_id="long"):
    """All pages from the newest to the oldest and back; steps of each page."""
    parts, found = [], life(job_id, NOW)
    while True:
        parts.append(found)
        if found.older is None:
            break
        found = life(job_id, NOW, Part(before=found.older))
    back = [found]
    while found.newer is not None:
        found = life(job_id, NOW, Part(after=found.newer))
        back.append(found)
    return parts, back


def test_walking_both_ways_shows_every_step_once_and_the_same_pages(clock, team_lead):
    failed(FAILURES, team_lead)
    parts, back = walk()
    assert len(parts) == -(-FAILURES // TOKENS)
    steps = [step for part in reversed(parts) for step in part.steps]
    redriven = len(range(EVERY, FAILURES, EVERY))
    counted = {kind: sum(step.kind == kind for step in steps) for kind in {step.kind for step in steps}}
    assert counted == {
        "accepted": 1,
        "retry": FAILURES - redriven - 1,
        "permanent": redriven + 1,
        "redriven": redriven,
        "quarantined": redriven + 1,
        "investigated": redriven,
        "late_finish": len(range(1, FAILURES, 11)),
    }
    assert [(step.at_ms) for step in steps] == sorted(step.at_ms for step in steps)
    again = [step for part in back for step in part.steps]
    assert sorted(again, key=repr) == sorted(steps, key=repr)
    assert [part.looked for part in parts] == [False] * len(parts)
    assert all(part.effect_possible for part in parts)


def test_a_page_costs_the_same_however_long_the_life_is(clock, team_lead, monkeypatch):
    read, rows = [], life_steps._rows
    monkeypatch.setattr(life_steps, "_rows", lambda *given: read.append(rows(*given)) or read[-1])
    numbers = []
    failed(TOKENS * 3, team_lead, job_id="short")
    queue.enqueue("long", 1)
    Failure.objects.bulk_create(
        Failure(job_id="long", token=token, attempt=1, at_ms=START_MS + token, outcome="retry", code="", worker="w")
        for token in range(1, FAILURES + 1)
    )
    for job_id, middle in (("short", TOKENS * 3 // 2), ("long", FAILURES // 2)):
        for part in (Part(), Part(before=middle), Part(after=middle)):
            read.clear()
            with CaptureQueriesContext(connection) as asked:
                assert len(life(job_id, NOW, part).steps) >= TOKENS
            numbers.append((len(asked), sum(map(len, read))))
    assert max(queries for queries, _ in numbers) <= 13
    assert max(n for _, n in numbers) <= 4 * (TOKENS + 1) + 10


def test_a_token_that_has_only_a_late_finish_is_not_lost_at_the_edge_of_a_page(clock, db):
    queue.enqueue("a", 1)
    Failure.objects.bulk_create(
        Failure(job_id="a", token=token, attempt=1, at_ms=START_MS + token, outcome="retry", code="", worker="w")
        for token in range(1, 3 * TOKENS, 2)
    )
    LateFinish.objects.bulk_create(
        LateFinish(job_id="a", token=token, at_ms=START_MS + token, outcome="ok") for token in range(2, 3 * TOKENS, 2)
    )
    parts, _ = walk("a")
    steps = [step.token for part in parts for step in part.steps if step.token is not None]
    assert sorted(steps) == list(range(1, 3 * TOKENS))
    assert len(steps) == 3 * TOKENS - 1


def test_the_console_leads_to_older_and_newer_steps(clock, client, as_user, operator, team_lead):
    failed(TOKENS + 20, team_lead)
    as_user(client, operator)
    newest = client.get("/orders/long/?queue=snacks").content.decode()
    assert "?queue=snacks&amp;before=21" in newest
    assert "Newer steps" not in newest
    assert "only an approved redrive starts this order again" in newest
    oldest = client.get("/orders/long/?queue=snacks&before=21").content.decode()
    assert "?queue=snacks&amp;after=20" in oldest
    assert "Older steps" not in oldest
    assert "Accepted" in oldest
    assert len(re.findall("Try 1 failed", oldest)) == 20
    for strange in ("before=-1", "before=x", "after=٣", "before=" + "9" * 40, "before=", "before=0", "after=999999"):
        assert client.get(f"/orders/long/?{strange}").status_code == 200, strange


def test_an_order_that_was_removed_says_what_is_known_of_it(clock, client, as_user, operator):
    keep(1)
    deliver(["gone"])
    age(clock, 2)
    housekeeping.remove_round(wait=lambda _seconds: False)
    as_user(client, operator)
    page = client.get("/orders/gone/")
    assert page.status_code == 200
    assert "This order was delivered and kept as long as its queue keeps delivered orders." in page.content.decode()
    assert client.get("/orders/never/").status_code == 404
    assert client.post("/orders/gone/contents/").status_code == 403  # who may not look learns nothing of what is there
    operator.user_permissions.add(Permission.objects.get(codename="view_payload"))
    assert client.post("/orders/gone/contents/").status_code == 404


# --- what a newer version wrote -------------------------------------------------------------------------------------
def test_a_step_that_this_version_does_not_know_is_shown_as_it_is_stored(clock, client, as_user, operator):
    die(1)
    Failure.objects.create(job_id="o1", token=9, attempt=1, at_ms=clock.now, outcome="teleported", code="later_code")
    found = life("o1", clock.now)
    strange = found.steps[-1]
    assert (strange.kind, step_sentence(strange), step_mark(strange)) == ("teleported", "teleported", ("quiet", "note"))
    as_user(client, operator)
    page = client.get("/orders/o1/").content.decode()
    assert "teleported" in page
    assert "later_code" in page


@pytest.mark.parametrize(
    ("column", "value"), [("state", "frozen"), ("reason", "forgotten")], ids=["a state", "a reason"]
)
def test_a_state_or_reason_of_a_newer_version_is_shown_and_never_overwritten(
    clock, client, as_user, team_lead, column, value
):
    """A newer schema may allow more; this version's moves name the states that they know."""
    die(1)
    lift_checks()
    if column == "state":
        with connection.cursor() as cursor:
            cursor.execute("UPDATE jobs SET state = 'pending', reason = '', code = '', redriven = 1 WHERE id = 'o1'")
            cursor.execute("UPDATE jobs SET state = %s WHERE id = 'o1'", [value])
    else:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE jobs SET state = 'pending', reason = '', code = '', redriven = 1 WHERE id = 'o1'")
            cursor.execute("UPDATE jobs SET state = 'dead', reason = %s WHERE id = 'o1'", [value])
    before = Job.objects.values().get()
    assert queue.claim("w", now_ms=clock.now + 10**9) == []
    assert not queue.finish("o1", before["token"], "ok")
    assert not queue.renew("o1", before["token"])
    assert queue.enqueue("o1", 1) == "duplicate"
    assert Job.objects.values().get() == before
    as_user(client, team_lead)
    for address in ("/orders/o1/", "/", "/quarantine/", "/causes/"):
        page = client.get(address)
        assert page.status_code == 200, address
    assert value in client.get("/orders/o1/").content.decode()


def lift_checks():
    """What a newer schema would do: more words are allowed in `jobs`. The test's rollback brings the rules back."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA ignore_check_constraints = 1")
            return
        for name in ("jobs_state", "jobs_reason_iff_dead", "jobs_lease_iff_leased"):
            cursor.execute(f"ALTER TABLE jobs DROP CONSTRAINT {name}")


@pytest.fixture(autouse=True)
def _checks_again():
    yield
    if connection.vendor == "sqlite" and connection.connection is not None:
        connection.connection.execute("PRAGMA ignore_check_constraints = 0")
