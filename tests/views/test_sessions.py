"""What the record keeps of accounts, how often somebody may fail, how long a session lives."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import OperationalError
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone

from queue_app.models import AuditEvent
from queue_app.services import session_limits
from queue_app.store import chain
from queue_app.views.throttle import client_address
from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db
SIGN_IN, HOME, CHANGE = reverse("sign_in"), reverse("preferences"), reverse("password_change")
NEW = "another fine staple"
IDLE = timedelta(hours=2)


def try_in(client: Client, name: str, password: str, **more: Any) -> Any:
    return client.post(SIGN_IN, {"username": name, "password": password}, **more)


def events(*names: str) -> list[tuple[Any, ...]]:
    """Action, target, actor, then details by name, of every event."""
    found = AuditEvent.objects.order_by("seq").values_list("action", "target", "actor_id", "detail")
    return [(*row[:3], *(json.loads(row[3]).get(name) for name in names)) for row in found]


@pytest.fixture
def broken_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that takes no event."""

    def refuse(*_events: object) -> None:
        raise OperationalError("the record is full")

    monkeypatch.setattr(chain, "append", refuse)


# --- the record -------------------------------------------------------------------------------------------------------
def test_signing_in_and_out_stand_in_the_record_with_person_address_and_proof(client: Client, operator: User) -> None:
    try_in(client, "oda", PASSWORD, REMOTE_ADDR="10.1.2.3")
    client.post(reverse("sign_out"))
    target = f"user:{operator.pk}"
    assert events("address") == [
        ("sign_in", target, operator.pk, "10.1.2.3"),
        ("sign_out", target, operator.pk, "127.0.0.1"),
    ]
    rows = AuditEvent.objects.order_by("seq").values_list("name", "roles", "source", "proof")
    assert list(rows) == [("oda", "operator", "console", "password"), ("oda", "operator", "console", "session")]


def test_signing_out_twice_is_recorded_once(client: Client, operator: User) -> None:
    try_in(client, "oda", PASSWORD)
    for _time in range(2):
        assert client.post(reverse("sign_out")).status_code == 302
    assert [event[0] for event in events()] == ["sign_in", "sign_out"]


def test_a_failure_names_the_account_but_nobody_as_its_actor(client: Client, operator: User) -> None:
    try_in(client, "oda", "wrong")
    assert events("tried", "waits") == [("refused", f"user:{operator.pk}", None, "sign_in", False)]


@pytest.mark.parametrize("name", ["nobody", PASSWORD, "ｎｏｂｏｄｙ", "n" * 150, "x\ny", "=1+1", "\u202eabc"])
def test_a_name_that_nobody_has_leaves_only_a_mark_for_it_may_be_a_password(client: Client, name: str) -> None:
    for _time in range(2):
        try_in(client, name, "wrong")
    first, second = AuditEvent.objects.order_by("seq")
    assert (first.action, first.target, first.name) == ("refused", "identity:unknown", "")
    assert name not in first.detail
    assert first.detail.isascii()
    marks = [json.loads(row.detail)["mark"] for row in (first, second)]
    assert marks[0] == marks[1]  # the same unknown name is known again
    assert len(marks[0]) == 16


def test_tries_during_a_wait_do_not_fill_the_record(client: Client, operator: User) -> None:
    for _try in range(9):
        try_in(client, "oda", "wrong")
    assert [event[-1] for event in events("waits")] == [False] * 4 + [True]


def test_a_new_password_is_recorded_and_a_wrong_old_one_too(
    client: Client, operator: User, as_user: Callable[[Client, User], Client]
) -> None:
    as_user(client, operator)
    for old in ("wrong", PASSWORD):
        client.post(CHANGE, {"old_password": old, "new_password1": NEW, "new_password2": NEW})
    target = f"user:{operator.pk}"
    assert events("tried") == [
        ("refused", target, operator.pk, "password_change"),
        ("password_change", target, operator.pk, None),
    ]
    kept = " ".join(AuditEvent.objects.values_list("detail", flat=True))
    assert NEW not in kept
    assert PASSWORD not in kept


@pytest.mark.django_db(transaction=True)  # the 503 closes the connection
def test_a_password_stays_when_its_event_cannot_be_written(
    client: Client, operator: User, as_user: Callable[[Client, User], Client], broken_record: None
) -> None:
    as_user(client, operator)
    answer = client.post(CHANGE, {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW})
    assert answer.status_code == 503
    assert User.objects.get(pk=operator.pk).check_password(PASSWORD)


def test_a_broken_record_keeps_nobody_from_looking(client: Client, operator: User, broken_record: None) -> None:
    assert try_in(client, "oda", "wrong").status_code == 200
    assert try_in(client, "oda", PASSWORD).status_code == 302
    assert client.get(HOME).status_code == 200
    assert client.post(reverse("sign_out")).status_code == 302
    assert client.get(HOME).status_code == 302
    assert not AuditEvent.objects.exists()


# --- how often somebody may fail ----------------------------------------------------------------------------------------
@pytest.fixture
def ten_tries(settings: Any) -> None:
    """A limit per address that is quickly reached."""
    settings.SIGN_IN_TRIES_PER_ADDRESS = 10


def fail(client: Client, n: int, **more: Any) -> list[int]:
    """`n` failures, two for each name; their statuses."""
    return [try_in(client, f"guess{k // 2}", "wrong", **more).status_code for k in range(n)]


def test_an_address_that_tries_many_names_has_to_wait(client: Client, operator: User, ten_tries: None) -> None:
    assert fail(client, 10) == [200] * 9 + [429]
    answer = try_in(client, "oda", PASSWORD)
    assert answer.status_code == 429
    assert 800 < int(answer["Retry-After"]) <= 900
    assert try_in(Client(), "oda", PASSWORD, REMOTE_ADDR="10.0.0.9").status_code == 302


def test_an_account_of_ones_own_buys_no_guesses_at_others(client: Client, operator: User, ten_tries: None) -> None:
    fail(client, 8)
    assert try_in(client, "oda", PASSWORD).status_code == 302
    assert [try_in(Client(), f"more{k}", "wrong").status_code for k in range(2)] == [200, 429]


def test_the_address_is_free_again_when_enough_failures_are_old(
    client: Client, operator: User, ten_tries: None
) -> None:
    fail(client, 10)
    AccessAttempt.objects.filter(username="guess0").update(attempt_time=timezone.now() - timedelta(minutes=14))
    assert 0 < int(try_in(client, "oda", PASSWORD)["Retry-After"]) <= 60
    AccessAttempt.objects.filter(username="guess0").update(attempt_time=timezone.now() - timedelta(minutes=16))
    assert try_in(client, "oda", PASSWORD).status_code == 302


@pytest.mark.parametrize(
    ("trusted", "forwarded", "address"),
    [
        (False, "10.9.9.9", "192.0.2.1"),
        (True, "10.9.9.9", "10.9.9.9"),
        (True, "6.6.6.6, 10.9.9.9", "10.9.9.9"),  # only the last entry is the proxy's own
        (True, "", "192.0.2.1"),
        (True, "10.9.9.9, nonsense", "192.0.2.1"),
        (True, "2001:db8::1", "2001:db8::1"),
    ],
)
def test_only_the_proxy_of_the_installation_may_say_where_a_request_comes_from(
    settings: Any, trusted: bool, forwarded: str, address: str
) -> None:
    settings.BEHIND_PROXY = trusted
    request = RequestFactory().get("/", REMOTE_ADDR="192.0.2.1", headers={"X-Forwarded-For": forwarded})
    assert client_address(request) == address


# --- how long a session lives ---------------------------------------------------------------------------------------------
@pytest.fixture
def oda(client: Client, operator: User, as_user: Callable[[Client, User], Client]) -> Client:
    return as_user(client, operator)


def row_of(client: Client) -> Session:
    return Session.objects.get(session_key=client.cookies["sessionid"].value)


def left(client: Client) -> timedelta:
    return row_of(client).expire_date - timezone.now()


def rewind(client: Client, by: timedelta) -> None:
    """As if everything in this session had happened so much earlier."""
    row = row_of(client)
    data = row.get_decoded()
    end = timezone.datetime.fromisoformat(data[session_limits.END]) - by
    data |= {session_limits.END: end.isoformat(), "_session_expiry": (row.expire_date - by).isoformat()}
    Session.objects.filter(pk=row.pk).update(session_data=SessionStore().encode(data), expire_date=row.expire_date - by)


def near(span: timedelta, wanted: timedelta) -> bool:
    return wanted - timedelta(minutes=1) < span <= wanted


def test_a_session_without_a_person_at_it_ends_after_two_hours_on_the_server(oda: Client) -> None:
    assert near(left(oda), IDLE)
    rewind(oda, IDLE - timedelta(minutes=1))
    kept = oda.cookies["sessionid"].value
    rewind(oda, timedelta(minutes=2))
    stranger = Client()
    stranger.cookies["sessionid"] = kept
    assert stranger.get(HOME).status_code == 302


def test_somebody_who_does_something_stays_signed_in(oda: Client) -> None:
    rewind(oda, IDLE - timedelta(minutes=1))
    assert oda.get(HOME).status_code == 200
    assert near(left(oda), IDLE)
    assert oda.cookies["sessionid"]["max-age"] > 7_000  # the browser keeps the cookie as long


def test_an_open_dashboard_does_not_keep_a_session_alive(oda: Client) -> None:
    rewind(oda, IDLE - timedelta(minutes=1))
    live = reverse("overview_live")
    assert oda.get(live, headers={"HX-Request": "true"}).status_code == 200
    assert near(left(oda), timedelta(minutes=1))
    rewind(oda, timedelta(minutes=2))
    answer = oda.get(live, headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/"})
    assert (answer.status_code, answer["HX-Redirect"]) == (401, f"{SIGN_IN}?next=/")


def test_after_twelve_hours_even_a_busy_session_ends(oda: Client) -> None:
    for _hour in range(11):
        rewind(oda, timedelta(hours=1))
        assert oda.get(HOME).status_code == 200
    assert near(left(oda), timedelta(hours=1))  # what is left of the whole, not two hours more
    rewind(oda, timedelta(minutes=61))
    assert oda.get(HOME).status_code == 302


def test_a_new_password_does_not_prolong_the_whole(oda: Client) -> None:
    end = row_of(oda).get_decoded()[session_limits.END]
    oda.post(CHANGE, {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW})
    assert oda.get(HOME).status_code == 200
    assert row_of(oda).get_decoded()[session_limits.END] == end


def test_signing_in_again_begins_a_new_whole(oda: Client) -> None:
    first = row_of(oda).get_decoded()[session_limits.END]
    oda.post(reverse("sign_out"))
    try_in(oda, "oda", PASSWORD)
    assert row_of(oda).get_decoded()[session_limits.END] > first


def test_a_session_that_never_got_its_limits_is_not_accepted(oda: Client) -> None:
    row = row_of(oda)
    data = row.get_decoded()
    del data[session_limits.END]
    Session.objects.filter(pk=row.pk).update(session_data=SessionStore().encode(data))
    assert oda.get(HOME).status_code == 302


def test_pages_are_read_on_though_no_session_can_be_prolonged(oda: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    rewind(oda, IDLE - timedelta(minutes=1))

    def refuse(*_given: object, **_more: object) -> None:
        raise OperationalError("database or disk is full")

    monkeypatch.setattr(SessionStore, "save", refuse)
    assert oda.get(HOME).status_code == 200
    assert near(left(oda), timedelta(minutes=1))
