"""Cursors are read back exactly or refused; sort and page size are what they say or refused."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy.cursors import SORTS, Cursor, CursorError, PageRequest, decode, page_request
from queue_app.policy.filters import Filter
from queue_app.policy.orders import MAX_INSTANT_MS

DIGEST = Filter(queue="snacks").digest()
CURSOR = Cursor(DIGEST, "newest", False, 1_800_000_000_000, 1_799_999_999_999, 42)
CURSORS = st.builds(
    Cursor,
    st.just(DIGEST),
    st.sampled_from(SORTS),
    st.booleans(),
    st.integers(0, MAX_INSTANT_MS),
    st.integers(0, 999_999_999_999_999),
    st.integers(0, 2**63 - 1),
)


@given(CURSORS)
def test_a_cursor_survives_its_address(cursor: Cursor) -> None:
    assert decode(cursor.encode(), DIGEST) == cursor


@given(st.text(max_size=200) | st.from_regex(r"[A-Za-z0-9_-]{0,170}", fullmatch=True))
def test_garbage_is_refused_with_the_typed_error(text: str) -> None:
    with pytest.raises(CursorError, match="cannot be read"):
        decode(text, DIGEST)


@given(CURSORS, st.integers(0, 200), st.characters(codec="ascii"))
def test_a_changed_cursor_is_another_cursor_or_refused(cursor: Cursor, place: int, character: str) -> None:
    text = cursor.encode()
    place %= len(text)
    changed = text[:place] + character + text[place + 1 :]
    try:
        found = decode(changed, DIGEST)
    except CursorError:
        return
    assert found.encode() == changed


def opaque(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "text",
    [
        CURSOR.encode()[:-1],
        CURSOR.encode() + "=",
        CURSOR.encode() + "A",
        CURSOR.encode() + "\n",
        opaque(f"1.{DIGEST}.newest.on.1.2.{2**63}"),
        opaque(f"1.{DIGEST}.newest.on.1.2.-3"),
        opaque(f"1.{DIGEST}.newest.on.1.02.3"),
        opaque(f"1.{DIGEST}.newest.on.{MAX_INSTANT_MS + 1}.2.3"),
        opaque(f"1.{DIGEST}.sideways.on.1.2.3"),
        opaque(f"2.{DIGEST}.newest.on.1.2.3"),
        opaque(f"1.{DIGEST}.newest.on.1.2.٣"),
        opaque(f"1.{DIGEST}.newest.on.1.2.3\n"),
        "x" * 10_000,
    ],
)
def test_hostile_cursors_are_refused(text: str) -> None:
    with pytest.raises(CursorError, match="cannot be read"):
        decode(text, DIGEST)


def refusal(given: dict[str, list[str]], digest: str = DIGEST) -> tuple[str, str, dict[str, object]]:
    with pytest.raises(CursorError) as caught:
        page_request(given, digest)
    return caught.value.field, caught.value.template, dict(caught.value.values)


UNREAD = "This link into the list cannot be read; start at its beginning."
OTHER_FILTER = "This link belongs to a list with another filter; start at its beginning."
OTHER_WAY = "This link belongs to a list sorted the other way; start at its beginning."
NO_SORT = "The list is sorted oldest or newest first, not %(value)s."
NO_SIZE = "A page has 1 to %(most)s orders, and this is %(value)s."
TWICE = "%(name)s is given more than once."


def test_what_is_no_page_is_refused_whole() -> None:
    text = CURSOR.encode()
    assert refusal({"cursor": ["x"]}) == ("cursor", UNREAD, {})
    assert refusal({"cursor": [text]}, Filter().digest()) == ("cursor", OTHER_FILTER, {})
    assert refusal({"cursor": [text], "sort": ["oldest"]}) == ("cursor", OTHER_WAY, {})
    assert refusal({"sort": ["NEWEST"]}) == ("sort", NO_SORT, {"value": "'NEWEST'"})
    assert refusal({"size": ["201"]}) == ("size", NO_SIZE, {"most": 200, "value": "'201'"})
    assert refusal({"size": ["0001"]}) == ("size", NO_SIZE, {"most": 200, "value": "'0001'"})
    for name in ("cursor", "sort", "size"):
        assert refusal({name: ["", ""]}) == (name, TWICE, {"name": name})


def test_a_cursor_is_written_as_its_parts_and_read_up_to_the_last_number() -> None:
    last = Cursor(DIGEST, "oldest", True, MAX_INSTANT_MS, 999_999_999_999_999, 2**63 - 1)
    assert last.encode() == opaque(f"1.{DIGEST}.oldest.back.{MAX_INSTANT_MS}.999999999999999.{2**63 - 1}")
    assert CURSOR.encode() == opaque(f"1.{DIGEST}.newest.on.1800000000000.1799999999999.42")
    for cursor in (last, CURSOR, Cursor(DIGEST, "newest", False, 0, 0, 0)):
        assert decode(cursor.encode(), DIGEST) == cursor
    with pytest.raises(CursorError, match="cannot be read"):
        decode(b"MQ", DIGEST)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, PageRequest()),
        ({"sort": ["newest"], "size": ["200"]}, PageRequest("newest", 200)),
        ({"sort": [""], "size": [""], "cursor": [""]}, PageRequest("oldest", 50, None)),
        ({"sort": ["oldest"], "size": ["001"], "cursor": []}, PageRequest("oldest", 1, None)),
        ({"cursor": [CURSOR.encode()], "queue": ["snacks", "drinks"]}, PageRequest("newest", 50, CURSOR)),
        ({"cursor": [CURSOR.encode()], "sort": ["newest"], "size": ["1"]}, PageRequest("newest", 1, CURSOR)),
    ],
)
def test_an_address_asks_for_a_page(values: dict[str, list[str]], expected: PageRequest) -> None:
    assert page_request(values, DIGEST) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [("size", value) for value in ("0", "201", "-1", "1_0", "١", "1" * 5_000, "1000000000", " 5", "5.0", "x")]
    + [("sort", value) for value in ("id;drop", "OLDEST", "changed_at_ms", "\0")],
)
def test_page_sizes_and_sorts_that_are_none_are_refused(name: str, value: str) -> None:
    with pytest.raises(CursorError) as caught:
        page_request({name: [value]}, DIGEST)
    assert caught.value.field == name
    assert str(caught.value).isascii()


@pytest.mark.parametrize("name", ["size", "sort", "cursor"])
def test_two_values_are_refused(name: str) -> None:
    with pytest.raises(CursorError, match="more than once"):
        page_request({name: ["50", "60"]}, DIGEST)
