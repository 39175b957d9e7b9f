"""Whatever an address, a form or a header holds, the answer is a page that says so: never a failure, never a change.

`SNACKOPS_HOSTILE=100000` sends as many instead of the usual ones.
"""

import os
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpResponseBase, StreamingHttpResponse
from django.test import Client
from django.urls import reverse

from queue_app.policy.canonical import canonical_json
from queue_app.services import queue
from tests.conftest import START_MS
from tests.views.hostile import Asked, asked

pytestmark = pytest.mark.django_db

REQUESTS = int(os.environ.get("SNACKOPS_HOSTILE", "2000"))
SHARES = 8
ANSWERS = {200, 204, 302, 400, 401, 403, 404, 405, 409, 413, 422}


@pytest.fixture
def orders(clock: object) -> None:
    """Three orders in quarantine, one delivered, one waiting."""
    for k in range(1, 6):
        queue.enqueue(f"h-{k}", k, payload={"item": "<b>"}, now_ms=START_MS)
    for lease, (outcome, code) in zip(
        queue.claim("w", limit=4, now_ms=START_MS),
        [("permanent", "http_422"), ("permanent", ""), ("permanent", "http_422"), ("ok", "")],
        strict=True,
    ):
        queue.finish(lease.id, lease.token, outcome, code=code, now_ms=START_MS)


def jobs() -> list[tuple[Any, ...]]:
    """All orders as they stand."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM jobs ORDER BY id")
        return cursor.fetchall()


def body(answer: HttpResponseBase) -> str:
    """The whole answer; an export is written while it is read."""
    parts = answer.streaming_content if isinstance(answer, StreamingHttpResponse) else [answer.content]  # type: ignore[attr-defined]
    return b"".join(parts).decode()  # type: ignore[arg-type]


def wrong(client: Client, one: Asked) -> str:
    """What is wrong with the answer to a request, or ''."""
    try:
        if one.method == "GET":
            answer = client.get(one.path, headers=one.headers)
        else:
            answer = client.post(one.path, one.data, content_type=one.content_type, headers=one.headers)
        text = body(answer)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if answer.status_code not in ANSWERS:
        return f"status {answer.status_code}"
    if "text/html" in answer.get("Content-Type", "") and ("alert(1)</script>" in text or "<img src=x" in text):
        return "markup came back as markup"
    return ""


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.timeout(3_600)
def test_no_request_makes_a_page_fail_or_an_order_change(share: int, operator: User, orders: None) -> None:
    client = Client()
    before = jobs()
    found = []
    client.force_login(operator)
    for one in asked(share + 1, REQUESTS // SHARES):
        what = wrong(client, one)
        if what:
            found.append((what, canonical_json(one.path[:300]), one.data[:200], one.headers))
        if "Cookie" in one.headers:
            client.force_login(operator)  # a forged cookie ends the session
    assert found == []
    assert jobs() == before


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("reason=x", "The reason is permanent, exhausted or deadline, not"),
        ("reason=permanent&reason=deadline", "The filter reason is given 2 times; give it once."),
        ("queue=nowhere", "No queue"),
        ("died_from=10000000000000000", "A time is written like 2026-11-29T02:30"),
        ("died_from=2024-02-30", "A time is written like 2026-11-29T02:30"),
        ("died_from=5&died_to=4", "The end of the time of death must be after its beginning."),
        ("size=1000000000", "A page has 1 to 200 orders"),
        ("size=%D9%A1", "A page has 1 to 200 orders"),
        ("sort=id%3Bdrop", "The list is sorted oldest or newest first, not"),
        ("cursor=garbage", "This link into the list cannot be read; start at its beginning."),
        ("id=%EF%BC%A1", "In half-width: A"),
        ("reaso=permanent", "There is no filter"),
    ],
)
def test_a_list_that_cannot_be_meant_says_why_and_keeps_the_input(
    client: Client, operator: User, orders: None, query: str, sentence: str
) -> None:
    client.force_login(operator)
    answer = client.get(f"{reverse('quarantine_list')}?{query}")
    assert answer.status_code == 400
    assert sentence in answer.text.replace("&#x27;", "'")
    assert answer.text.count("<form") > 1


@pytest.mark.parametrize("prefix", ["%25", "_", "h-_", "h%25"])
def test_wildcards_of_the_database_are_not_wildcards_here(
    client: Client, operator: User, orders: None, prefix: str
) -> None:
    client.force_login(operator)
    answer = client.get(f"{reverse('quarantine_list')}?id={prefix}")
    assert answer.status_code == 400 or "0 orders match" in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/orders/%00/",
        "/orders/a%2Fb/",
        "/orders/%D0%B0/",
        "/orders/..%2Fx/",
        f"/orders/{'x' * 65}/",
        "/orders/%ff/",
        "/orders/h-9/",
    ],
)
def test_an_id_that_no_order_has_is_not_found(client: Client, operator: User, orders: None, path: str) -> None:
    client.force_login(operator)
    assert client.get(path).status_code == 404


def test_ids_differ_by_case(client: Client, operator: User, orders: None) -> None:
    client.force_login(operator)
    assert client.get(reverse("job", args=["h-1"])).status_code == 200
    assert client.get(reverse("job", args=["H-1"])).status_code == 404


@pytest.mark.parametrize(
    ("name", "data", "status"),
    [
        ("quarantine_export", {"format": "xls"}, 400),
        ("quarantine_export", {"reason": ["permanent", "deadline"]}, 400),
        ("investigation_new", {"queue": "snacks", "note": "a b", "finding": "looking", "as_of": "1"}, 422),
        ("investigation_new", {"queue": "snacks", "note": "INC-1", "finding": "solved", "as_of": "1"}, 422),
        ("investigation_new", {"queue": "snacks", "note": "INC-1", "finding": "fixed", "as_of": str(2**70)}, 422),
        ("investigation_new", {"job": "a b", "note": "INC-1", "finding": "fixed", "as_of": "1"}, 400),
        ("investigation_new", {"job": "nobody", "note": "INC-1", "finding": "fixed", "as_of": "1"}, 404),
        ("saved_filter_new", {"name": "x", "reason": "'"}, 400),
    ],
)
def test_a_form_that_cannot_be_meant_is_refused_and_writes_nothing(
    client: Client, operator: User, orders: None, name: str, data: dict[str, Any], status: int
) -> None:
    client.force_login(operator)
    answer = client.post(reverse(name), data)
    assert answer.status_code == status
    with connection.cursor() as cursor:
        cursor.execute("SELECT (SELECT count(*) FROM investigations) + (SELECT count(*) FROM saved_filters)")
        assert cursor.fetchone() == (0,)
