"""Lines to records: cells, the number of the first line, the length of all lines, and what is said of a spoilt row."""

import pytest

from queue_app.policy.lines import MAX_LINE_BYTES, Line
from queue_app.policy.tables import Record, header_cells, records

UNCLOSED = "Its quotes do not close, or text follows a closing quote."
TWO_OF_THREE = "It has 2 cells where the header has 3."
TOO_LONG = "It is longer than 65,536 bytes."


def lines(*texts: str) -> list[Line]:
    """As they come after a header."""
    return [Line(number, text) for number, text in enumerate(texts, start=2)]


@pytest.mark.parametrize(
    ("text", "delimiter", "cells"),
    [
        ("id\tq u\t", "\t", ["id", "q u", ""]),
        ('"id"\tn', "\t", ['"id"', "n"]),
        ('id,"q,u"," n "', ",", ["id", "q,u", " n "]),
        ("id\tq,u", ",", ["id\tq", "u"]),
        ('id,"qu', ",", None),
        ('id,"q"u', ",", None),
    ],
)
def test_a_header_is_one_whole_line(text: str, delimiter: str, cells: list[str] | None) -> None:
    assert header_cells(Line(1, text), delimiter) == cells
    assert header_cells(Line(1, text, TOO_LONG), delimiter) is None


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (
            lines('a\t"b\t', "", "  ", "\t\t", "a b\tc\td"),
            [Record(2, ["a", '"b', ""], 5), Record(5, ["", "", ""], 2), Record(6, ["a b", "c", "d"], 7)],
        ),
        ([Line(2, "a\tb\tc", TOO_LONG)], [Record(2, ["a", "b", "c"], 5, TOO_LONG)]),
        ([Line(2, "a\tb", TOO_LONG)], [Record(2, ["a", "b"], 3, TOO_LONG)]),
        (lines("a"), [Record(2, ["a"], 1, "It has 1 cell where the header has 3.")]),
        (lines("a\tb"), [Record(2, ["a", "b"], 3, TWO_OF_THREE)]),
        (
            lines("\t" * 1_233),
            [Record(2, [""] * 1_234, 1_233, "It has 1,234 cells where the header has 3.")],
        ),
    ],
)
def test_tabs_divide_and_quotes_are_characters(given: list[Line], found: list[Record]) -> None:
    assert list(records(given, "\t", 3)) == found


SPOILT = Line(3, "x", TOO_LONG)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (lines("a,b,c", "", ' d , "e"," f "'), [Record(2, ["a", "b", "c"], 5), Record(4, [" d ", ' "e"', " f "], 14)]),
        (lines('"a,""A""",b,c'), [Record(2, ['a,"A"', "b", "c"], 13)]),
        (lines("a,b", "c,d,e"), [Record(2, ["a", "b"], 3, TWO_OF_THREE), Record(3, ["c", "d", "e"], 5)]),
        # a quote within a cell opens nothing
        (lines('a,b"', 'c,d"'), [Record(2, ["a", 'b"'], 4, TWO_OF_THREE), Record(3, ["c", 'd"'], 4, TWO_OF_THREE)]),
        (lines('a,b",c', 'd,e",f'), [Record(2, ["a", 'b"', "c"], 6), Record(3, ["d", 'e"', "f"], 6)]),
        # over two, three and four lines, blank ones too
        (lines('a,"b', 'b",c', "d,e,f"), [Record(2, ["a", "b\nb", "c"], 8), Record(4, ["d", "e", "f"], 5)]),
        (lines('"a","b', 'b",c'), [Record(2, ["a", "b\nb", "c"], 10)]),
        (
            lines('a,"b', "12345", "", 'b",c', "d,e,f"),
            [Record(2, ["a", "b\n12345\n\nb", "c"], 13), Record(6, ["d", "e", "f"], 5)],
        ),
        (lines('a,"b', 'x ""y"" z', 'b",c'), [Record(2, ["a", 'b\nx "y" z\nb', "c"], 17)]),
        (lines('a,"b', 'b",c', 'd,"e', 'e",f'), [Record(2, ["a", "b\nb", "c"], 8), Record(4, ["d", "e\ne", "f"], 8)]),
        # a quote that is never closed, or that closes a record of another width, spoils its own line only
        (
            lines('" a ",X"XbX"X,"c', "d,e,f"),
            [Record(2, [" a ", 'X"XbX"X', "c"], 16, UNCLOSED), Record(3, ["d", "e", "f"], 5)],
        ),
        (
            lines('a,"b', 'b",c,d', "e,f,g"),
            [Record(2, ["a", "b"], 4, UNCLOSED), Record(3, ['b"', "c", "d"], 6), Record(4, ["e", "f", "g"], 5)],
        ),
        (lines('a,"b'), [Record(2, ["a", "b"], 4, UNCLOSED)]),
        (lines('a,"b"x,c', 'd,"e'), [Record(2, ["a", 'b"x', "c"], 8, UNCLOSED), Record(3, ["d", "e"], 4, UNCLOSED)]),
        # a line that is not whole ends the look ahead, and is told of by itself
        (
            [Line(2, 'a,"b'), SPOILT, Line(4, 'b",c')],
            [
                Record(2, ["a", "b"], 4, UNCLOSED),
                Record(3, ["x"], 1, TOO_LONG),
                Record(4, ['b"', "c"], 4, TWO_OF_THREE),
            ],
        ),
        ([Line(2, '"a , b","c', TOO_LONG)], [Record(2, ["a ", " b", "c"], 10, TOO_LONG)]),
    ],
)
def test_commas_divide_and_quoted_cells_may_go_on_over_lines(given: list[Line], found: list[Record]) -> None:
    assert list(records(given, ",", 3)) == found


@pytest.mark.parametrize("over", [0, 1])
@pytest.mark.parametrize("between", [(), ("x" * 30_000, "y" * 30_000)])
def test_a_record_over_several_lines_is_no_longer_than_a_line_may_be(over: int, between: tuple[str, ...]) -> None:
    ends = ['a,"b', 'b",c']
    used = sum(len(text) + 1 for text in (*ends, *between)) - 1
    long = "z" * (MAX_LINE_BYTES - used - 1 + over)
    given = lines(ends[0], *between, long, ends[1])
    whole = Record(2, ["a", "\n".join(["b", *between, long, "b"]), "c"], sum(len(line.text) for line in given))
    found = list(records(given, ",", 3))
    assert found[0] == (Record(2, ["a", "b"], 4, UNCLOSED) if over else whole)
    assert len(found) == (len(given) if over else 1)
