"""G20: housekeeping of every kind takes delivered orders of their time and no evidence of a failure, and a page says it."""

import pytest
from django.core.management import call_command
from django.urls import reverse

from queue_app.models import AuditEvent, Failure, Job, Queue, Redrive, RedriveOutcome
from queue_app.services import counting, housekeeping, queue
from queue_app.services.verification import verify
from tests.engine.invariants import check_evidence, check_jobs
from tests.growth.stories import age, deliver, keep
from tests.redrive.story import approved, die, run, work

pytestmark = pytest.mark.django_db
TELLS = (Failure, Redrive, RedriveOutcome, AuditEvent)


def test_G20_an_outage_fills_the_quarantine_and_no_housekeeping_takes_anything_of_it(clock, operator, team_lead):  # noqa: N802
    keep(1)
    dead = die(40)
    plan = approved(operator, team_lead)
    run(plan, clock)
    work("permanent", code="http_410")  # all of them die again
    deliver(["done-1", "done-2"])
    age(clock, 400)
    kept = {model: set(model.objects.values_list("pk", flat=True)) for model in TELLS}
    call_command("housekeeping", "--json")
    housekeeping.tidy(clock.now)
    counting.rebuild(wait=lambda _seconds: None)
    assert set(Job.objects.values_list("id", "state")) == {(job_id, "dead") for job_id in dead}
    for model, rows in kept.items():
        assert rows <= set(model.objects.values_list("pk", flat=True)), f"{model.__name__} lost rows"
    assert verify().whole
    check_jobs()
    check_evidence()
    assert queue.enqueue("done-1", 3) == "duplicate", "what went is still known"


@pytest.mark.parametrize(("kept_ms", "says"), [(None, "for ever"), (30 * 86_400_000, "for 30 d")])
def test_G20_the_page_of_a_queue_says_what_is_removed_and_what_never_is(client, as_user, operator, kept_ms, says):  # noqa: N802
    Queue.objects.filter(name="snacks").update(done_kept_ms=kept_ms)
    page = as_user(client, operator).get(reverse("queue_list")).content.decode()
    fact = page.partition("Delivered orders are kept")[2].partition("</div>")[0]
    assert says in fact
    assert "an order in quarantine is never removed" in fact
