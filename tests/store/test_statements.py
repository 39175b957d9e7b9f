"""Statements sent together: all or none, each with its rows, and every value arrives as it was."""

from contextlib import nullcontext

import pytest
from django.db import Error, connection, transaction

from queue_app.models import Queue, Tally
from queue_app.store import database, statements, volleys
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


# --- which way statements go, without a database ----------------------------------------------------------------------


class Session:
    """Stands in for Django's connection and the driver's: keeps which way each statement came."""

    description = ("n",)  # of the rows

    def __init__(self, vendor, **how):
        self.vendor, self.execute_wrappers, self.queries_logged = vendor, [], False
        self.wrap_database_errors, self.atomic_blocks, self.way = nullcontext(), [None], "driver"
        vars(self).update(how)
        self.connection, self.asked, self.description = self, [], ["n"]

    def cursor(self):
        self.way = "django"
        return nullcontext(self)

    def execute(self, sql, values):
        self.asked.append((self.way, sql, values))
        return self

    def fetchall(self):
        return [(len(self.asked),)]

    def fire(self, session, statements, *, commit):
        assert session is self
        self.way = "together, and committed" if commit else "together"
        return [self.execute(*statement).fetchall() for statement in statements]


@pytest.mark.parametrize("vendor", ["sqlite", "postgresql"])
@pytest.mark.parametrize(
    ("how", "last", "way"),
    [
        ({}, None, "together"),
        ({}, False, "together"),
        ({}, True, "together, and committed"),
        ({"atomic_blocks": [None, None]}, True, "together"),
        ({"atomic_blocks": []}, True, "together"),
        ({"execute_wrappers": [None]}, True, "django"),
        ({"queries_logged": True}, None, "django"),
    ],
)
def test_who_listens_hears_each_and_the_commit_travels_only_with_the_last_of_its_own(
    monkeypatch, vendor, how, last, way
):
    here = Session(vendor, **how)
    monkeypatch.setattr(statements, "connections", {"default": here})
    monkeypatch.setattr(volleys, "fire", here.fire)
    some = [("SELECT %s, %s", [1, 2]), ("SELECT %s", [3])]
    assert fetch_all(some, **({} if last is None else {"last": last})) == [[(1,)], [(2,)]]
    way = "driver" if vendor == "sqlite" and way != "django" else way
    mark = "?" if way == "driver" else "%s"
    assert here.asked == [(way, sql.replace("%s", mark), values) for sql, values in some]
    assert fetch(*some[1]) == [(3,)]
    here.description = None
    assert fetch(*some[1]) == ([] if way == "django" else [(4,)]), "an update has no rows to be heard"
    assert here.asked[2] == (way.replace(", and committed", ""), *here.asked[1][1:])


@pytest.mark.django_db
def test_a_statement_without_rows_gives_none_also_to_who_listens():
    change = ("UPDATE heads SET seq = seq", [])
    with transaction.atomic():
        assert fetch_all([change]) == [[]]
        with connection.execute_wrapper(lambda execute, *call: execute(*call)):
            assert fetch_all([change]) == [[]]
