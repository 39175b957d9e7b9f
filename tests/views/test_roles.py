"""Every address, every role, every method. A new address without a row here fails."""

import json

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from queue_app.models import AuditEvent, Plan
from queue_app.policy.selections import by_group
from queue_app.policy.terms import Terms
from queue_app.services import plans, queue
from tests.conftest import PASSWORD, START_MS

pytestmark = pytest.mark.django_db

READ, FORM, CHANGE, OPEN, OWN = "read", "form", "change", "open", "own"
PLAN, DIGEST = "the number of the plan", "the digest of the plan"
# url name -> (kind, arguments). read: GET for every role, nobody else; form: the same, and POST; change: POST only;
# open: for strangers too; own: GET and POST for whoever is signed in
ADDRESSES: dict[str, tuple[str, tuple]] = {
    "livez": (OPEN, ()),
    "readyz": (OPEN, ()),
    "sign_in": (OPEN, ()),
    "sign_out": (CHANGE, ()),
    "password_change": (OWN, ()),
    "preferences": (OWN, ()),
    "language": (CHANGE, ()),
    "theme": (CHANGE, ()),
    "overview": (READ, ()),
    "overview_live": (READ, ()),
    "quarantine_list": (READ, ()),
    "quarantine_newer": (READ, ()),
    "quarantine_export": (CHANGE, ()),
    "saved_filter_new": (CHANGE, ()),
    "saved_filter_delete": (CHANGE, (1,)),
    "group_list": (READ, ()),
    "group": (READ, ("snacks", "permanent", "http_422")),
    "investigation_list": (READ, ()),
    "investigation_new": (FORM, ()),
    "investigation_presence": (CHANGE, ()),
    "order_list": (READ, ()),
    "job": (READ, ("a-1",)),
    "job_unblock": (CHANGE, ("a-1",)),
    "job_payload": (CHANGE, ("a-1",)),
    "process_list": (READ, ()),
    "process_live": (READ, ()),
    "process_drain": (CHANGE, ()),
    "queue_list": (READ, ()),
    "queue_move": (CHANGE, ("snacks",)),
    "queue_limits": (CHANGE, ("snacks",)),
    "reconciliations": (READ, ()),
    "audit_list": (READ, ()),
    "audit_event": (READ, (1,)),
    "audit_export": (CHANGE, ()),
    "redrive_list": (READ, ()),
    "redrive_new": (FORM, ()),
    "redrive": (READ, (PLAN,)),
    "redrive_live": (READ, (PLAN,)),
    "redrive_items": (READ, (PLAN,)),
    "redrive_export": (CHANGE, (PLAN,)),
    "redrive_decide": (FORM, (PLAN,)),
    "redrive_move": (CHANGE, (PLAN,)),
}


@pytest.fixture
def dead_order(clock: object) -> None:
    """One order in quarantine, redrive 1 that waits for approval, and event 1 of the record."""
    queue.enqueue("a-1", 7, now_ms=START_MS)
    (lease,) = queue.claim("w", now_ms=START_MS)
    queue.finish(lease.id, lease.token, "permanent", code="http_422", now_ms=START_MS)
    asker = User.objects.create_user("asker")
    asker.groups.add(Group.objects.get(name="operator"))
    plans.ask(asker, by_group("snacks", "permanent", "http_422"), Terms(1_000), note="INC-1")


def address_of(name: str) -> str:
    """The address, with the number that the plan really got."""
    return reverse(name, args=[Plan.objects.get().pk if part == PLAN else part for part in ADDRESSES[name][1]])


def names(patterns: list[URLPattern | URLResolver]) -> set[str]:
    """All names of the urlconf."""
    found: set[str] = set()
    for pattern in patterns:
        found |= names(pattern.url_patterns) if isinstance(pattern, URLResolver) else {str(pattern.name)}
    return found


def test_every_address_has_a_row_and_every_row_an_address() -> None:
    assert names(get_resolver().url_patterns) == set(ADDRESSES)


def signed_in(user: User) -> Client:
    """A browser of this person."""
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize("name", sorted(name for name, row in ADDRESSES.items() if row[0] != OPEN))
def test_a_stranger_is_sent_to_the_sign_in_and_reads_nothing(name: str, dead_order: None) -> None:
    address = address_of(name)
    for method in ("get", "post"):
        answer = getattr(Client(), method)(address)
        if name == "language" and method == "post":
            continue  # strangers choose their language too
        assert answer.status_code in (302, 405), (method, answer.status_code)
        if answer.status_code == 302:
            assert answer["Location"].startswith(reverse("sign_in"))


@pytest.mark.parametrize("name", sorted(name for name, row in ADDRESSES.items() if row[0] in (READ, FORM)))
@pytest.mark.parametrize("role", ["operator", "team_lead", "auditor"])
def test_every_role_reads_and_reading_changes_nothing(
    name: str, role: str, dead_order: None, request: pytest.FixtureRequest
) -> None:
    client = signed_in(request.getfixturevalue(role))
    address = address_of(name)
    with CaptureQueriesContext(connection) as asked:
        answer = client.get(address)
    assert answer.status_code == 200
    writes = [query["sql"] for query in asked if query["sql"].split(" ", 1)[0] in ("INSERT", "UPDATE", "DELETE")]
    assert not writes
    assert client.head(address).status_code == 200


@pytest.mark.parametrize("name", sorted(name for name, row in ADDRESSES.items() if row[0] in (READ, FORM, CHANGE)))
def test_methods_that_an_address_does_not_know_are_refused(name: str, team_lead: User, dead_order: None) -> None:
    kind, _arguments = ADDRESSES[name]
    address = address_of(name)
    client = signed_in(team_lead)
    refused = ["put", "delete", "patch", "options", "trace"]
    if kind == CHANGE:
        refused += ["get", "head"]
    elif kind == READ:
        refused += ["post"]
    for method in refused:
        assert getattr(client, method)(address).status_code == 405, method
    overridden = client.get(address, headers={"X-HTTP-Method-Override": "DELETE"})
    assert overridden.status_code in (200, 404, 405)


@pytest.mark.parametrize("name", sorted(name for name, row in ADDRESSES.items() if row[0] in (READ, FORM)))
def test_somebody_without_a_role_is_told_so(name: str, dead_order: None) -> None:
    client = signed_in(User.objects.create_user("nobody", password=None))
    for _again in range(2):  # an open page asks again by itself: told once
        answer = client.get(address_of(name))
        assert answer.status_code == 403
        assert "may do this" in answer.text
    (told,) = refusals()
    assert told == ("nobody", f"page:{name}", "read", "console", "session")


def refusals() -> list[tuple[str, str, str, str, str]]:
    """Who was refused what, as the record tells it."""
    rows = AuditEvent.objects.filter(action="refused").order_by("seq")
    return [(row.name, row.target, json.loads(row.detail)["tried"], row.source, row.proof) for row in rows]


@pytest.mark.parametrize("name", sorted(name for name, row in ADDRESSES.items() if row[0] == CHANGE))
def test_a_form_without_its_token_is_refused(name: str, team_lead: User, dead_order: None) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(team_lead)
    assert client.post(address_of(name)).status_code == 403


def test_a_superuser_without_a_group_may_nothing(dead_order: None) -> None:
    root = User.objects.create_superuser("root", password=None)
    assert signed_in(root).get(reverse("overview")).status_code == 403


EVERYBODY, WORK, DECIDE = {"operator", "team_lead", "auditor"}, {"operator", "team_lead"}, {"team_lead"}
# url name -> (who is not refused, form); every address that takes a change stands here
CHANGES: dict[str, tuple[set[str], dict[str, object]]] = {
    "sign_out": (EVERYBODY, {}),
    "language": (EVERYBODY, {"language": "ja"}),
    "theme": (EVERYBODY, {"theme": "dark"}),
    "quarantine_export": (EVERYBODY, {"format": "csv"}),
    "audit_export": (EVERYBODY, {"format": "csv"}),
    "redrive_export": (EVERYBODY, {"format": "csv"}),
    "saved_filter_new": (EVERYBODY, {"name": "mine", "query": "queue=snacks"}),
    "saved_filter_delete": (EVERYBODY, {}),
    "investigation_new": (
        WORK,
        {
            "queue": "snacks",
            "reason": "permanent",
            "code": "http_422",
            "note": "I-1",
            "finding": "fixed",
            "as_of": START_MS,
        },
    ),
    "investigation_presence": (WORK, {"queue": "snacks", "reason": "permanent", "code": "http_422"}),
    "job_unblock": (DECIDE, {"note": "INC-8", "token": 1}),
    "job_payload": (set(), {}),
    "redrive_new": (WORK, {"queue": "snacks", "note": "INC-5"}),
    "redrive_decide": (
        DECIDE,
        {"decision": "reject", "note": "INC-6", "round": 1, "digest": DIGEST, "password": PASSWORD},
    ),
    "redrive_move": (WORK, {"move": "pause"}),
    "process_drain": (DECIDE, {"worker": f"{START_MS} w", "note": "INC-7"}),
    "queue_move": (DECIDE, {"move": "pause", "note": "INC-7"}),
    "queue_limits": (DECIDE, {"max_unfinished": "10", "note": "INC-7"}),
}


def test_every_address_that_takes_a_change_says_who_may_make_it() -> None:
    assert set(CHANGES) == {name for name, row in ADDRESSES.items() if row[0] in (FORM, CHANGE)}


@pytest.mark.parametrize("name", sorted(CHANGES))
@pytest.mark.parametrize("role", sorted(EVERYBODY))
def test_a_change_is_for_the_roles_that_may_make_it(
    name: str, role: str, dead_order: None, request: pytest.FixtureRequest
) -> None:
    may, form = CHANGES[name]
    filled = {key: Plan.objects.get().digest if value == DIGEST else value for key, value in form.items()}
    answer = signed_in(request.getfixturevalue(role)).post(address_of(name), filled)
    refused = (403, 422) if name == "redrive_decide" else (403,)  # its form comes back with the sentence
    assert (answer.status_code in refused) == (role not in may), answer.status_code
    if role not in may:
        assert len(refusals()) == 1, "a refused act stands in the record, once"
    assert name != "redrive_decide" or Plan.objects.get().state == ("rejected" if role in may else "proposed")


OWN_CHOICES = {"sign_out", "language", "theme"}  # of everybody who is signed in, also without a role


@pytest.mark.parametrize("name", sorted(set(CHANGES) - OWN_CHOICES))
def test_a_change_by_somebody_without_a_role_is_refused_and_recorded(name: str, dead_order: None) -> None:
    _may, form = CHANGES[name]
    filled = {key: Plan.objects.get().digest if value == DIGEST else value for key, value in form.items()}
    answer = signed_in(User.objects.create_user("nobody", password=None)).post(address_of(name), filled)
    assert answer.status_code == 403
    assert [told[0] for told in refusals()] == ["nobody"]


def test_an_auditor_changes_nothing(auditor: User, dead_order: None) -> None:
    client = signed_in(auditor)
    form = {"queue": "snacks", "reason": "permanent", "code": "http_422", "note": "INC-1", "finding": "looking"}
    assert client.post(reverse("investigation_new"), {**form, "as_of": START_MS}).status_code == 403
    assert client.post(reverse("job_payload", args=["a-1"])).status_code == 403
    kept = client.post(reverse("saved_filter_new"), {"name": "mine", "for_all": "yes"})
    assert kept.status_code == 403


def test_a_deactivated_person_is_out_at_the_next_request(operator: User, dead_order: None) -> None:
    client = signed_in(operator)
    assert client.get(reverse("overview")).status_code == 200
    User.objects.filter(pk=operator.pk).update(is_active=False)
    assert client.get(reverse("overview")).status_code == 302
