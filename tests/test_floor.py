"""The floor holds: what every other test takes for granted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.utils import translation

from queue_app import clock as product_clock
from queue_app.models import Head, Queue
from queue_app.store import database, triggers
from tests.conftest import BASE_DIR, Clock, RealDatabase


def test_a_run_has_its_own_folder_of_data() -> None:
    assert Path(settings.DATA_DIR) != BASE_DIR / ".data"
    assert Path(settings.DATA_DIR).name.startswith("snackops-tests-")


@pytest.mark.parametrize("round_", [1, 2])
@pytest.mark.django_db(transaction=True)
def test_after_the_flush_of_a_transactional_test_the_guards_and_default_rows_are_back(round_: int) -> None:
    assert triggers.missing() == []
    assert list(Queue.objects.values_list("name", flat=True)) == ["snacks"]
    assert set(Group.objects.values_list("name", flat=True)) == {"operator", "team_lead", "auditor"}
    assert set(Head.objects.values_list("name", "seq")) == {("chain", 0), ("jobs", 0)}
    Queue.objects.create(name="drinks")
    User.objects.create_user("somebody")


@pytest.mark.django_db
def test_a_test_without_commits_finds_them_too() -> None:
    assert triggers.missing() == []
    assert list(Queue.objects.values_list("name", flat=True)) == ["snacks"]


def test_another_process_sees_what_a_test_committed(real_database: RealDatabase) -> None:
    Queue.objects.create(name="drinks")
    code = "import django; django.setup(); from queue_app.models import Queue; print(Queue.objects.count())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=real_database.environ,
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "2\n"


@pytest.mark.django_db
def test_the_clock_stands_still_until_it_is_moved_also_in_the_database(clock: Clock) -> None:
    began = clock.now
    assert product_clock.now_ms() == database.now_ms() == began
    assert clock.advance(1_500) == product_clock.now_ms() == database.now_ms() == began + 1_500
    clock.now = 7
    assert product_clock.now_ms() == database.now_ms() == 7


@pytest.mark.django_db(transaction=True)
def test_the_clock_rules_a_committed_database_too(clock: Clock) -> None:
    later = clock.advance(10)
    assert database.now_ms() == later


@pytest.mark.django_db(transaction=True)
def test_and_afterwards_the_true_clock_rules_again() -> None:
    before = product_clock.now_ms()
    assert abs(database.now_ms() - before) < 60_000


def test_three_people_have_one_role_each(operator: User, team_lead: User, auditor: User) -> None:
    roles = [[group.name for group in user.groups.all()] for user in (operator, team_lead, auditor)]
    assert roles == [["operator"], ["team_lead"], ["auditor"]]


def test_a_client_can_be_signed_in(client: Client, operator: User, as_user) -> None:
    assert as_user(client, operator).session["_auth_user_id"] == str(operator.pk)


@pytest.mark.django_db
def test_the_database_under_test_keeps_the_products_options() -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SHOW server_version_num")
            assert int(cursor.fetchone()[0]) >= 150_000
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM pragma_journal_mode")
        assert cursor.fetchone()[0] == "persist"
    assert Path(connection.settings_dict["NAME"]).is_relative_to(os.environ["SNACKOPS_DATA"])


@pytest.mark.django_db
@pytest.mark.parametrize("language", ["zh-hans", "ja", "en"])
def test_no_test_speaks_the_language_of_the_one_before(language: str) -> None:
    assert translation.get_language() == "en"
    Client().get("/sign-in/", headers={"accept-language": language})
    assert translation.get_language() == language
