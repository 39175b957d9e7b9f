"""Statements sent together: all or none, each with its rows, and every value arrives as it was."""

import pytest
from django.db import Error, connection, transaction

from queue_app.models import Queue, Tally
from queue_app.store import database
from queue_app.store.given import Given
from queue_app.store.statements import fetch, fetch_all
from queue_app.store.volleys import _dumped, _numbered

ADD = "INSERT INTO tallies (name, slot, n) VALUES (%s, 0, %s) RETURNING n"
HARD = ["", "a,b", '"', "\\", '\\"', "{}", "NULL", "null", "a b", "\n", "\t", "'", "%s", "$1", "チップス", "\U0001f35f"]


@pytest.mark.django_db
def test_every_value_comes_back_as_it_went():
    given = Given("word text, number bigint, gap text")
    rows = [(word, number - 3, None) for number, word in enumerate(HARD)]
    with database.write():
        found = fetch(f"SELECT g.word, g.number, g.gap FROM {given.table} ORDER BY g.number", given.values(rows))
        assert found == rows
        for word in HARD:
            assert fetch("SELECT CAST(%s AS text), CAST(%s AS bigint), CAST(%s AS text)", [word, 2**62, None]) == [
                (word, 2**62, None)
            ]


@pytest.mark.parametrize("value", [True, 1.5, b"x", [True], [1.5], object()])
def test_a_value_that_no_statement_takes_is_refused(value):
    with pytest.raises(TypeError, match="statements"):
        _dumped(value)


def test_marks_are_counted_in_their_order():
    assert _numbered("SELECT %s, %s WHERE a = %s") == b"SELECT $1, $2 WHERE a = $3"
    assert _numbered("SELECT 1") == b"SELECT 1"


@pytest.mark.django_db(transaction=True)
def test_statements_sent_together_answer_each_for_itself():
    with database.write():
        answers = fetch_all([(ADD, ["one", 1]), ("SELECT n FROM tallies WHERE n > %s", [9]), (ADD, ["two", 2])])
    assert answers == [[(1,)], [], [(2,)]]
    assert Tally.objects.count() == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("bad", [0, 1, 2])
@pytest.mark.parametrize("again", [False, True])
def test_one_that_fails_undoes_all_of_them_though_the_commit_was_on_its_way(bad, again):
    """Also with statements that the session knows."""
    for _ in range(1 + again):
        some = [(ADD, ["one", 1]), (ADD, ["two", 2])]
        some.insert(bad, (ADD, ["three", None]))
        with pytest.raises(Error, match=r"(?i)null"), database.write():
            fetch_all(some, last=True)
        assert not Tally.objects.exists()
        assert connection.in_atomic_block is False
        with database.write():
            assert fetch(ADD, ["four", 4]) == [(4,)]
        Tally.objects.all().delete()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("bad", [0, 1])
def test_a_session_whose_first_statements_failed_goes_on_with_them(bad):
    """A statement that was prepared before the failure is known to the server from then on, whatever was undone."""
    some = [(f"SELECT 7 / CAST(%s AS integer) -- {bad} first", [1]), (f"SELECT 8 / CAST(%s AS integer) -- {bad}", [1])]
    failing = [(sql, [0] if place == bad else [1]) for place, (sql, _) in enumerate(some)]
    if connection.vendor == "postgresql":
        with pytest.raises(Error, match="zero"), database.write():
            fetch_all(failing)
    with database.write():
        assert fetch_all(some) == [[(7,)], [(8,)]]


@pytest.mark.django_db(transaction=True)
def test_what_is_said_to_be_the_last_inside_anothers_transaction_commits_nothing():
    with transaction.atomic():
        with database.write():
            fetch_all([(ADD, ["one", 1])], last=True)
        transaction.set_rollback(True)
    assert not Tally.objects.exists()
    with database.write():
        fetch_all([(ADD, ["one", 1])], last=True)
    with database.write():
        Queue.objects.create(name="drinks")
    assert (Tally.objects.count(), Queue.objects.filter(name="drinks").count()) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_a_session_that_was_lost_is_an_error_of_the_database_and_the_next_one_works():
    def loses():
        with database.write():
            fetch(ADD, ["one", 1])
            connection.connection.close()
            fetch(ADD, ["two", 2])

    with pytest.raises(Error):
        loses()
    connection.close()
    with database.write():
        fetch(ADD, ["three", 3])
    assert list(Tally.objects.values_list("name", flat=True)) == ["three"]
