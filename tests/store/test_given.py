"""Rows as one table of a statement: the text and the values, in each database's own way."""

import pytest

from queue_app.store import given
from queue_app.store.given import Given

ROWS = [("a", 1, None), ("b", 2, "x")]


@pytest.mark.parametrize(
    ("postgresql", "table", "among", "values"),
    [
        (
            False,
            "(SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS token, "
            "json_extract(value, '$[2]') AS code FROM json_each(%s)) AS g",
            "IN (SELECT json_extract(value, '$[0]') FROM json_each(%s))",
            ['[["a", 1, null], ["b", 2, "x"]]'],
        ),
        (
            True,
            "unnest(%s::text[], %s::bigint[], %s::varchar[]) AS g(id, token, code)",
            "= ANY(%s::text[])",
            [["a", "b"], [1, 2], [None, "x"]],
        ),
    ],
)
def test_three_columns_of_two_rows(
    monkeypatch: pytest.MonkeyPatch, postgresql: bool, table: str, among: str, values: list[object]
) -> None:
    monkeypatch.setattr(given, "is_postgresql", lambda: postgresql)
    some = Given("id text, token bigint, code varchar")
    assert (some.table, some.among, some.values(ROWS)) == (table, among, values)
    alone = Given("id bigint")
    assert (alone.among == among) is not postgresql, "the type is the first column's"
    assert alone.values([(7,)]) == ([[7]] if postgresql else ["[[7]]"])


def test_rows_of_different_lengths_are_a_mistake_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given, "is_postgresql", lambda: True)
    with pytest.raises(ValueError, match="shorter"):
        Given.values([("a", 1), ("b",)])
