"""The proof finds every tampering on the database under test, whichever it is."""

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from queue_app.policy.chain import GENESIS, Anchor, Link
from queue_app.reads import chain as rows
from queue_app.services import verification
from queue_app.services.verification import verify
from queue_app.store import chain, triggers
from tests.audit import story
from tests.audit.story import ROWS, Tampering, event, every_column, redrive


@pytest.fixture
def told(operator: User, team_lead: User) -> None:
    """The story is in the tables, and nothing guards them any more."""
    story.tell(operator.pk, team_lead.pk)
    triggers.drop_all()


def run(sql: str) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall() if cursor.description else []


def tamper(what: Tampering) -> None:
    """On PostgreSQL deferred constraints would otherwise wait for a commit that never comes."""
    for statement in what.statements:
        run(statement)


def anchor() -> Anchor:
    found = rows.anchor()
    assert found
    return found


@pytest.mark.django_db
def test_an_empty_record_is_whole() -> None:
    report = verify(Anchor(0, GENESIS))
    assert (report.whole, report.events, report.redrives, str(report.head)) == (True, 0, 0, f"0:{GENESIS}")


@pytest.mark.usefixtures("told")
def test_an_untouched_record_is_whole_and_its_anchor_is_in_it() -> None:
    report = verify(anchor())
    assert (report.whole, report.events, report.redrives, report.head) == (True, 5, 4, anchor())


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 9, 10])
def test_the_size_of_the_bites_does_not_matter(size: int) -> None:
    assert verify(bite=size).events == 5
    tamper(Tampering("", ("DELETE FROM redrives WHERE id = 7",), "", ""))
    broken = verify(bite=size).broken
    assert broken
    assert broken.what[0] == "gap"
    assert broken.before
    assert broken.row
    assert broken.after
    assert [place.title.split(" (")[0] for place in (broken.before, broken.row, broken.after)] == [
        "audit seq 4",
        "redrives id 8",
        "audit seq 5",
    ]


@pytest.mark.usefixtures("told")
def test_a_change_of_any_column_of_any_row_is_found() -> None:
    unseen = []
    for what in every_column():
        with transaction.atomic():
            tamper(what)
            broken = verify().broken
            transaction.set_rollback(True)
        if broken is None or not ({what.what, "cut", "beyond", "gap"} & set(broken.what)):
            unseen.append((what.title, broken))
    assert unseen == []
    assert verify().whole


@pytest.mark.usefixtures("told")
def test_the_list_of_changes_names_every_column_that_the_tables_have() -> None:
    tried = {what.title.split(" of ")[0] for what in every_column()}
    with connection.cursor() as cursor:
        for table in ("audit", "redrives"):
            columns = {column.name for column in connection.introspection.get_table_description(cursor, table)}
            assert {f"{table}.{column}" for column in columns} <= tried


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize("what", ROWS, ids=lambda what: what.title)
def test_rows_that_are_gone_moved_or_added_are_found(what: Tampering) -> None:
    tamper(what)
    broken = verify().broken
    assert broken
    assert what.what in broken.what
    assert what.where in broken.sentence


@pytest.mark.usefixtures("told")
def test_a_cut_tail_with_a_mended_head_is_found_by_the_anchor_only() -> None:
    kept = anchor()
    run("DELETE FROM audit WHERE seq = 5")
    run("DELETE FROM redrives WHERE link > 6")
    story.rechain(run, since=1)
    assert verify().whole
    broken = verify(kept).broken
    assert broken
    assert (broken.table, broken.what) == ("anchor", ("ahead",))
    assert "of event 5, and the record ends at event 4" in broken.sentence


@pytest.mark.usefixtures("told")
def test_a_tail_that_was_chained_anew_is_found_by_any_anchor_at_or_after_the_change(operator: User) -> None:
    run("UPDATE audit SET note = note")
    early = verify().head
    chain.append([event("stop", "plan:1", operator.pk)])
    late = anchor()
    run("UPDATE audit SET note = 'forged' WHERE seq = 5")
    story.rechain(run, since=9)
    assert verify().whole
    for kept in (early, late):
        broken = verify(kept).broken
        assert broken
        assert (broken.table, broken.what) == ("anchor", ("hash",))
        assert broken.row
        assert broken.row.key == kept.seq


@pytest.mark.usefixtures("told")
def test_an_anchor_from_before_the_change_does_not_show_it_and_an_old_anchor_stays_good(team_lead: User) -> None:
    old = anchor()
    chain.append([event("stop", "plan:1")], [redrive("o3-1", team_lead.pk)])
    assert verify(old).whole


@pytest.mark.usefixtures("told")
def test_an_anchor_taken_when_redrives_rows_stood_last_is_in_the_record(team_lead: User) -> None:
    chain.append([], [redrive("o3-1", team_lead.pk), redrive("o3-2", team_lead.pk)])
    kept = anchor()
    chain.append([event("stop", "plan:1")])
    assert kept.seq == 5
    assert verify(kept).whole


@pytest.mark.usefixtures("told")
def test_a_broken_row_before_the_anchor_is_named_rather_than_the_anchor() -> None:
    kept = anchor()
    run("UPDATE audit SET note = 'forged' WHERE seq = 3")
    broken = verify(kept).broken
    assert broken
    assert (broken.table, broken.what) == ("audit", ("hash",))


@pytest.mark.usefixtures("told")
def test_rows_that_are_added_while_we_look_are_no_fault(monkeypatch: pytest.MonkeyPatch, team_lead: User) -> None:
    pending = [
        lambda: chain.append([event("stop", "plan:1")]),
        lambda: chain.append([], [redrive("o3-1", team_lead.pk)]),
        lambda: chain.append([event("end", "plan:1")], [redrive("o3-2", team_lead.pk)]),
    ]
    read = rows.bite

    def slow(after: int | None, upto: int, limit: int) -> list[Link]:
        if pending:
            pending.pop()()
        return read(after, upto, limit)

    monkeypatch.setattr(verification.chain, "bite", slow)
    report = verify(bite=2)
    assert report.whole
    assert (report.events, report.redrives) == (7, 6)


@pytest.mark.usefixtures("told")
def test_no_bite_holds_more_than_its_size_for_each_table(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    read = rows.bite

    def measured(after: int | None, upto: int, limit: int) -> list[Link]:
        found = read(after, upto, limit)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(verification.chain, "bite", measured)
    assert verify(bite=2).whole
    assert sum(sizes) == 9
    assert max(sizes) <= 4


@pytest.mark.django_db
def test_an_id_of_a_redrives_row_is_its_link(team_lead: User) -> None:
    chain.append([event("stop", "plan:1")])
    chain.append([], [redrive("o1-1", team_lead.pk)])
    assert run("SELECT id, link FROM redrives") == [(2, 2)]
