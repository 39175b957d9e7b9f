"""Text that came from elsewhere is shown as text; ids are never grouped; and nobody gets in by a name."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.urls import reverse

from queue_app.models import Investigation, SavedFilter
from queue_app.services import looks, queue, saved_filters
from tests.conftest import Clock
from tests.reads.stories import accept, die, redrive
from tests.redrive.story import ask

pytestmark = pytest.mark.django_db
HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'
PAGES: list[tuple[str, tuple[Any, ...]]] = [
    ("overview", ()),
    ("overview_live", ()),
    ("quarantine_list", ()),
    ("quarantine_newer", ()),
    ("group_list", ()),
    ("group", ("snacks", "permanent", "http_422")),
    ("investigation_list", ()),
    ("investigation_new", ()),
    ("job", ("a1",)),
    ("redrive_list", ()),
    ("redrive_new", ()),
    ("audit_list", ()),
]


def write(sql: str, *values: Any) -> None:
    """One statement that goes past the services."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)


@pytest.fixture
def hostile(clock: Clock, operator: User, team_lead: User) -> Clock:
    """Hostile text in every place that holds any: names of people and workers, codes, comments, contents, filters."""
    User.objects.filter(pk=operator.pk).update(username=HOSTILE)
    operator.refresh_from_db()
    queue.enqueue("a1", 1, payload={HOSTILE: HOSTILE}, order_key="")
    (lease,) = queue.claim("w")
    queue.finish("a1", lease.token, "permanent", code="http_422")
    die(clock, ["a2"])
    looks.record(operator, "group", "INC-1", "looking", group=("snacks", "permanent", "http_422"), comment=HOSTILE)
    looks.record(operator, "job", "INC-2", "fixed", job_id="a1", comment=HOSTILE)
    saved_filters.save(operator, HOSTILE, looks.Filter(queue="snacks"), for_all=True)
    ask(operator)
    write(
        "INSERT INTO failures (job_id, token, attempt, at_ms, outcome, code, worker) "
        "VALUES (%s, %s, 1, %s, 'retry', %s, %s)",
        "a1",
        77,
        clock.now,
        HOSTILE[:48],
        HOSTILE,
    )
    write(
        "INSERT INTO processes (name, kind, queue, started_at_ms, seen_at_ms, detail) "
        "VALUES (%s, 'worker', 'snacks', %s, %s, %s)",
        HOSTILE[:60],
        clock.now,
        clock.now,
        "<b>x",
    )
    return clock


@pytest.mark.parametrize(("name", "arguments"), PAGES)
@pytest.mark.parametrize("language", ["en", "ja", "zh-hans"])
def test_hostile_text_is_shown_as_text(
    hostile: Clock, console: Client, name: str, arguments: tuple[Any, ...], language: str
) -> None:
    answer = console.get(reverse(name, args=arguments), headers={"Accept-Language": language})
    assert answer.status_code in (200, 204)
    assert "<script>alert" not in answer.text
    assert "<img" not in answer.text
    assert "<b>x" not in answer.text
    if name in ("job", "group", "investigation_list"):
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in answer.text


def test_hostile_contents_and_refusals_are_text_too(hostile: Clock, console: Client, operator: User) -> None:
    operator.user_permissions.add(Permission.objects.get(codename="view_payload"))
    shown = console.post(reverse("job_payload", args=["a1"])).text
    assert "<script>alert" not in shown
    assert shown.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 2
    for address in ("/quarantine/", "/investigations/new/", "/redrives/new/"):
        for field in ("queue", "code", "id", "reason", "cursor", HOSTILE):
            refused = console.get(address, {field: HOSTILE}).text
            assert "<script>alert" not in refused
            assert "<img" not in refused


BIG = 1_234_567
GROUPED = re.compile(r"1[.,\u00a0\u202f']234[.,\u00a0\u202f']567")


@pytest.mark.parametrize("language", ["en", "de", "ja", "zh-hans"])
def test_ids_are_never_grouped_though_the_settings_group_numbers(
    clock: Clock, console: Client, operator: User, team_lead: User, settings: Any, language: str
) -> None:
    settings.USE_THOUSAND_SEPARATOR = True
    settings.LANGUAGE_CODE = "de"
    queue.enqueue("a1", 10_000)
    (lease,) = queue.claim("w")
    queue.finish("a1", lease.token, "permanent", code="http_422")
    die(clock, [f"b{n}" for n in range(3)])
    SavedFilter.objects.create(id=BIG, name="big", owner=operator, made_by=operator, query="{}", at_ms=clock.now)
    for n in range(51):
        Investigation.objects.create(
            id=BIG + n,
            at_ms=clock.now,
            as_of_ms=clock.now,
            by=operator,
            by_name="oda",
            scope="job",
            job_id="a1",
            note="INC-1",
            finding="looking",
            count=1,
        )
    headers = {"Accept-Language": language}
    listed = console.get("/quarantine/", headers=headers).text
    assert "10,000" in listed  # a quantity, in text
    assert f"/quarantine/filters/{BIG}/delete/" in listed
    assert f"?before={BIG + 1}" in console.get("/investigations/", headers=headers).text
    assert f'name="as_of" value="{clock.now + 1}"' in console.get("/investigations/new/?job=a1", headers=headers).text
    for name, arguments in PAGES:
        page = console.get(reverse(name, args=arguments), headers=headers).text
        assert not GROUPED.search(page), name
        for attribute in re.findall(r'(?:value|href|action|hx-get|id|name)="([^"]*)"', page):
            assert not re.search(r"\d[.,\u00a0\u202f]\d{3}(?!\d)", attribute), (name, attribute)
    answer = console.post(f"/quarantine/filters/{BIG}/delete/", headers=headers)
    assert answer.status_code == 302
    assert not SavedFilter.objects.exists()


@pytest.mark.parametrize("name", ["team_lead", "lead@x.evil", "tom ", "TOM", "admin", "auditor"])
def test_a_name_that_resembles_a_role_or_a_person_gives_no_right(clock: Clock, team_lead: User, name: str) -> None:
    die(clock, ["a1"])
    stranger = User.objects.create_user(name, is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(stranger)
    for page, arguments in PAGES:
        assert client.get(reverse(page, args=arguments)).status_code == 403
    assert (
        client.post(
            "/investigations/new/", {"job": "a1", "note": "INC-1", "finding": "fixed", "as_of": "9"}
        ).status_code
        == 403
    )
    assert client.post("/quarantine/export/", {"format": "csv"}).status_code == 403
    assert not Investigation.objects.exists()


def test_a_form_from_another_site_changes_nothing(clock: Clock, operator: User) -> None:
    die(clock, ["a1"])
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator)
    foreign = {"Origin": "https://evil.example", "Referer": "https://evil.example/"}
    sent = {"job": "a1", "note": "INC-1", "finding": "fixed", "as_of": str(clock.now)}
    for address in ("/investigations/new/", "/quarantine/filters/", "/quarantine/export/", "/orders/a1/contents/"):
        answer = client.post(address, sent, headers=foreign)
        assert answer.status_code == 403
        assert "Access-Control-Allow-Origin" not in answer
    assert not Investigation.objects.exists()


def test_who_left_the_role_between_page_and_form_is_refused(clock: Clock, console: Client, operator: User) -> None:
    die(clock, ["a1"])
    assert 'name="note"' in console.get("/investigations/new/?job=a1").text
    operator.groups.clear()
    sent = {"job": "a1", "note": "INC-1", "finding": "fixed", "as_of": str(clock.now)}
    assert console.post("/investigations/new/", sent).status_code == 403
    assert not Investigation.objects.exists()
    User.objects.filter(pk=operator.pk).update(is_active=False)
    assert console.get("/quarantine/").status_code in (302, 403)


def test_what_waits_and_what_is_held_shows_its_numbers_whole(
    clock: Clock, console: Client, operator: User, team_lead: User
) -> None:
    die(clock, ["a1", "a2"])
    redrive("a1", team_lead, batch=None)
    plan = ask(operator)
    accept(["w1"])
    assert f"held by R-{plan.pk}" in console.get("/quarantine/").text
