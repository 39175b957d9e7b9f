"""The page on which a lead decides: what it shows is what is recorded, and it tells enough to dare."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from queue_app.models import Approval, AuditEvent, Plan
from queue_app.policy.approvals import Tightening
from queue_app.policy.filters import Filter
from queue_app.policy.selections import by_filter
from queue_app.policy.terms import Terms
from queue_app.reads import latecomers, previews
from queue_app.services import approvals, batches, looks, queue, ticks
from tests.conftest import PASSWORD, Clock
from tests.redrive.story import SNACKS, approve, approved, ask, die, run, work
from tests.views.asking import said
from tests.views.deciding import as_shown, look, send, signed_in

pytestmark = pytest.mark.django_db
NEW = ("permanent", "http_422")


def slowed_and_paused(operator: User, team_lead: User, orders: int = 40) -> Plan:
    """Asked and approved at 5/s, slowed to 1/s, paused."""
    die(orders)
    plan = approved(operator, team_lead, Terms(5_000, canary=0))
    ticks.begin(plan.pk)
    batches.set_pace(operator, plan.pk, 1_000)
    batches.pause(operator, plan.pk)
    return plan


# --- the exact sentence -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "rate_mj", "sentence"),
    [
        ({}, 1_000, "tom approves R-{plan}: 40 orders at up to 1/s, with a trial of 10 first."),
        ({"rate": ""}, 1_000, "tom approves R-{plan}: 40 orders at up to 1/s, with a trial of 10 first."),
        ({"rate": "5"}, 5_000, "tom approves R-{plan}: 40 orders at up to 5/s, with a trial of 10 first."),
        (
            {"rate": "2", "canary": "12"},
            2_000,
            "tom approves R-{plan}: 40 orders at up to 2/s, with a trial of 12 first.",
        ),
    ],
)
def test_what_the_page_says_is_what_the_row_the_record_and_the_receipt_say(
    clock: Clock, operator: User, team_lead: User, changed: dict[str, str], rate_mj: int, sentence: str
) -> None:
    plan = slowed_and_paused(operator, team_lead)
    client = signed_in(team_lead)
    sentence = sentence.format(plan=plan.pk)
    page = look(client, plan)
    assert "40 orders at up to 1/s, with a trial of 10 first." in said(page)
    fields = as_shown(page) | changed
    before = Approval.objects.count()
    again = send(client, plan, fields | {"recalculate": "1"})
    assert sentence in said(again)
    part = send(client, plan, fields | {"recalculate": "1"}, **{"HX-Target": "sentence"})
    assert sentence in said(part)
    assert "<html" not in part.content.decode()
    assert Approval.objects.count() == before
    receipt = send(client, plan, fields)
    assert sentence in said(receipt)
    assert Approval.objects.get(round=2).rate_mj == rate_mj
    assert sentence in AuditEvent.objects.filter(action="plan.approve").latest("seq").detail


def test_looking_at_the_sentence_gives_no_secret_back_and_asks_for_none(
    clock: Clock, operator: User, team_lead: User
) -> None:
    die(3)
    plan = ask(operator)
    client = signed_in(team_lead)
    shown = send(client, plan, {"recalculate": "1", "rate": "1", "password": PASSWORD, "note": "two words"})
    assert shown.status_code == 200
    assert PASSWORD not in shown.content.decode()
    assert "3 orders at up to 1/s" in said(shown)
    wider = send(client, plan, {"recalculate": "1", "rate": "5000"}, **{"HX-Target": "sentence"})
    assert wider.status_code == 422
    assert "Nothing can be recorded yet" in said(wider)
    assert "slower" in said(wider)


def test_an_empty_form_is_refused_field_by_field(clock: Clock, operator: User, team_lead: User) -> None:
    die(3)
    plan = ask(operator)
    answer = send(signed_in(team_lead), plan, {})
    assert answer.status_code == 422
    assert answer.content.decode().count("This field is required.") >= 2
    assert not Approval.objects.exists()


def test_a_cause_that_is_left_out_is_named_and_not_counted(clock: Clock, operator: User, team_lead: User) -> None:
    die(5)
    die(2, first=50, code="http_422")
    die(1, first=70, code="http_422", outcome="retry")
    plan = ask(operator)
    client = signed_in(team_lead)
    page = look(client, plan)
    assert "refused by receiver · http_422" in said(page)
    assert "gave up after all tries · http_422" in said(page)  # two reasons with one code are told apart
    fields = as_shown(page) | {"left_out": ["permanent|http_422"], "recalculate": "1"}
    shown = said(send(client, plan, fields))
    assert "6 orders at up to 1000/s, without a trial." in shown
    assert "Left out: permanent/http_422." in shown


def test_a_new_round_neither_counts_nor_offers_what_an_earlier_one_left_out(
    clock: Clock, operator: User, team_lead: User
) -> None:
    die(30)
    die(4, first=50, code="http_422")
    die(3, first=60, code="http_500")
    plan = ask(operator, terms=Terms(1_000_000, canary=5))
    approve(team_lead, plan, tightening=Tightening(left_out=(NEW,)))
    run(plan, clock)
    work("permanent", code="http_503")
    run(plan, clock)
    client = signed_in(team_lead)
    page = look(client, plan)
    text = said(page)
    assert "Redrive 28 orders?" in text
    assert "28 are at stake: type the number to approve." in text
    assert 'value="permanent|http_422"' not in page.content.decode()
    assert 'value="permanent|http_500"' in page.content.decode()
    assert "28 orders at up to 1000/s" in text
    assert send(client, plan, as_shown(page)).redirect_chain  # type: ignore[attr-defined]
    assert Approval.objects.get(round=2).left_out == '[["permanent", "http_422"]]'


def test_one_order_is_one_order(clock: Clock, operator: User, team_lead: User) -> None:
    (job,) = die(1)
    clock.advance(8 * 86_400_000)
    plan = ask(operator)
    text = said(look(signed_in(team_lead), plan))
    assert "Redrive 1 order?" in text
    assert "1 order at 1000/s" in text
    assert "1 orders" not in text
    assert job


# --- ten seconds ------------------------------------------------------------------------------------------------------


def test_a_lead_sees_what_why_and_how_it_stops(clock: Clock, operator: User, team_lead: User) -> None:
    die(30)
    clock.advance(60_000)
    looks.record(
        operator, "group", "INC-9", "fixed", group=("snacks", "permanent", "http_503"), comment="A disk was full."
    )
    terms = Terms(
        20_000,
        steps=((5_000, 60), (10_000, 300)),
        cap=25,
        canary=7,
        stop_permille=250,
        canary_wait_ms=90_000,
        max_dead_ms=7 * 86_400_000,
        max_attempts=4,
        budget_ms=7_200_000,
    )
    wanted = by_filter(Filter(queue="snacks", reason="permanent", id_prefix="o"))
    plan = ask(operator, wanted, terms, comment="They added a disk, see CHG-4.")
    for name in ("redrive_decide", "redrive"):
        text = said(look(signed_in(team_lead), plan, name))
        for part in (
            "They added a disk, see CHG-4.",
            "fixed · INC-9 · oda",
            "A disk was full.",
            "5/s for 1 min, 10/s for 5 min",
            "25 orders, slowly at first, then at 20/s: about 5 s" if name == "redrive_decide" else "",
            "25, the oldest first",
            "7 orders first",
            "waits for its results for 1 min 30 s at most, then pauses",
            "Not if in quarantine for longer than 7 days",
            "New tries of each order 4",
            "New time of each order 2 h",
            "Queue: snacks",
            "Why it stopped: refused by receiver",
            "Id begins with: o",
        ):
            assert part in text.replace(" :", ":"), (name, part)
    page = look(signed_in(team_lead), plan).content.decode()
    assert f'href="/redrives/{plan.pk}/orders/"' in page


def test_at_a_new_round_the_page_says_why_it_stopped_and_what_the_trial_did(
    clock: Clock, operator: User, team_lead: User
) -> None:
    die(50)
    plan = approved(operator, team_lead, Terms(1_000_000, canary=10))
    run(plan, clock)
    work("permanent", code="http_503")
    run(plan, clock)
    for name in ("redrive_decide", "redrive"):
        text = said(look(signed_in(team_lead), plan, name))
        assert "Too many orders of the trial died again" in text, name
        assert "10 of 10 sent, 0 delivered, 10 died again" in text, name
        assert "Earlier redrives" in text
        assert "10 redriven, 0 skipped, 40 without a turn" in text
    assert "0 of 10 delivered" not in text


def test_nobody_wrote_and_nobody_looked(clock: Clock, operator: User, team_lead: User) -> None:
    die(2)
    text = said(look(signed_in(team_lead), ask(operator)))
    assert "oda wrote no comment." in text
    assert "nobody has looked at this cause" in text


# --- what changed since -----------------------------------------------------------------------------------------------


def test_what_died_and_what_left_is_said_with_more_where_it_is_more(
    clock: Clock, operator: User, team_lead: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    die(6)
    plan = ask(operator)
    client = signed_in(team_lead)
    assert "Since the list was fixed no order has died of its causes." in said(look(client, plan))
    clock.advance(1_000)
    die(4, first=100)
    for n in (1, 2):
        queue.redrive(f"o{n}", "INC-5", approved_by=team_lead, requested_by=operator, batch=plan.pk)
    text = said(look(client, plan))
    assert "Since the list was fixed 4 more died of its causes; they are not on it." in text
    assert "2 orders of the list have left the quarantine meanwhile and would be skipped." in text
    for reads in (previews, latecomers):
        monkeypatch.setattr(reads, "CAP", 3)
    text = said(look(client, plan))
    assert "Since the list was fixed 3+ more died of its causes; they are not on it." in text
    assert "Of the first 10,000 on the list 2 have left the quarantine meanwhile" in text


# --- who may, and what happens between page and submit ------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logs out", "changes the password", "changes it elsewhere"])
def test_who_logs_out_or_changes_the_password_between_page_and_submit_is_refused(
    clock: Clock, operator: User, team_lead: User, loss: str
) -> None:
    die(3)
    plan = ask(operator)
    client = signed_in(team_lead)
    fields = as_shown(look(client, plan))
    if loss == "logs out":
        client.logout()
    else:
        team_lead.set_password("another one")
        team_lead.save()
        if loss == "changes the password":  # in this very session, which therefore stays
            client.force_login(team_lead, backend="django.contrib.auth.backends.ModelBackend")
    answer = send(client, plan, fields)
    if loss == "changes the password":
        assert answer.status_code == 422
        assert "The password is not right." in said(answer)
    else:
        assert "sign-in" in answer.redirect_chain[0][0]  # type: ignore[attr-defined]
    plan.refresh_from_db()
    assert (plan.state, Approval.objects.count()) == ("proposed", 0)


def test_a_password_that_changes_while_it_is_being_checked_decides_nothing(
    clock: Clock, operator: User, team_lead: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    die(3)
    plan = ask(operator)
    client = signed_in(team_lead)
    fields = as_shown(look(client, plan))
    prove = approvals.confirm_identity

    def slowly(user: User, password: str) -> approvals.Proof:
        proof = prove(user, password)
        team_lead.set_password("another one")
        team_lead.save()
        return proof

    monkeypatch.setattr(approvals, "confirm_identity", slowly)
    answer = send(client, plan, fields)
    assert "The password was changed meanwhile" in said(answer)
    assert not Approval.objects.exists()


@pytest.mark.parametrize("allowed", [True, False])
def test_every_page_says_when_one_person_may_decide_alone(
    clock: Clock, operator: User, team_lead: User, client: Client, settings: object, allowed: bool
) -> None:
    settings.SOLO_APPROVAL = allowed  # type: ignore[attr-defined]
    die(3)
    plan = ask(operator)
    client.force_login(team_lead, backend="django.contrib.auth.backends.ModelBackend")
    for address in (
        "/redrives/",
        "/redrives/new/?queue=snacks",
        f"/redrives/{plan.pk}/",
        f"/redrives/{plan.pk}/decide/",
    ):
        assert ("Solo approval is allowed here" in client.get(address).content.decode()) == allowed, address


def test_the_hint_of_the_typed_number_belongs_to_its_field(clock: Clock, operator: User, team_lead: User) -> None:
    die(2)
    die(2, first=20, code="http_422")
    page = look(signed_in(team_lead), ask(operator, SNACKS)).content.decode()
    assert 'id="id_typed_helptext"' in page
    assert 'aria-describedby="id_typed_helptext"' in page
