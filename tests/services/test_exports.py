"""An export as a whole: its name, every byte, the event that tells of it; and every way in which there is none."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from django.contrib.auth.models import User

from queue_app.models import AuditEvent
from queue_app.policy.cells import BOM, Column, Row
from queue_app.policy.errors import NotAllowed, SnackOpsError
from queue_app.services import exports
from queue_app.services.exports import MAX_ROWS, REST_S, Content, TooManyRows, UnknownFormat, export, in_bites
from queue_app.services.people import Actor
from tests.conftest import START_MS
from tests.services.told import DEACTIVATED, WAYS, WORKERS, Refused, World, by_way, told

pytestmark = pytest.mark.django_db
COLUMNS = (Column("id", "id"), Column("n", "number"), Column("text"))
FILTER = '{"queue":"snacks"}'
TWO: list[Row] = [("o1", 1, "=a"), ("0012", None, "é\udc80")]
ONE: list[Row] = [("o3", 3, "")]
AS_OF = START_MS - 877  # 2027-01-15T07:59:59.123Z


def content(bites: Sequence[Sequence[Row]], rows: int, as_of_ms: int = AS_OF) -> Content:
    return Content(rows, as_of_ms, iter(bites))


def anchor() -> str:
    last = AuditEvent.objects.latest("seq")
    return f"{last.seq}:{last.hash}"


def csv_head(rows: int, as_of: str = "2027-01-15T07:59:59.123Z") -> bytes:
    lines = [
        "# export,demo,", '# filter,"{""queue"":""snacks""}",', f"# as_of,{as_of},", f"# rows,{rows},",
        f"# anchor,{anchor()},", "id,n,text",
    ]  # fmt: skip
    return (BOM + "".join(f"{line}\r\n" for line in lines)).encode()


def json_head(rows: int, as_of: str = "2027-01-15T07:59:59.123Z", as_of_ms: int = AS_OF) -> bytes:
    return (
        f'{{"export": "demo", "filter": "{{\\"queue\\":\\"snacks\\"}}", "as_of": "{as_of}", "as_of_ms": {as_of_ms}, '
        f'"rows": {rows}, "anchor": "{anchor()}"}}\n'
    ).encode()


CSV_TWO = b'"o1",1,"\'=a"\r\n"\'0012",,"\xc3\xa9\\udc80"\r\n'
CSV_ONE = b'"o3",3,""\r\n'
JSON_TWO = b'{"id": "o1", "n": 1, "text": "=a"}\n{"id": "0012", "n": null, "text": "\\u00e9\\udc80"}\n'
JSON_ONE = b'{"id": "o3", "n": 3, "text": ""}\n'
FILES = [
    ("csv", [TWO, ONE], 3, [CSV_TWO, CSV_ONE]),
    ("csv", [TWO, ONE], 4, [CSV_TWO, CSV_ONE, b"# written,3,\r\n"]),
    ("csv", [ONE], 2, [CSV_ONE, b"# written,1,\r\n"]),
    ("csv", [], 0, []),
    ("csv", [], 1, [b"# written,0,\r\n"]),
    ("jsonl", [TWO, ONE], 3, [JSON_TWO, JSON_ONE]),
    ("jsonl", [TWO, ONE], 4, [JSON_TWO, JSON_ONE, b'{"written": 3}\n']),
    ("jsonl", [ONE], 2, [JSON_ONE, b'{"written": 1}\n']),
    ("jsonl", [], 0, []),
    ("jsonl", [], 1, [b'{"written": 0}\n']),
]


@pytest.mark.parametrize(("form", "bites", "rows", "chunks"), FILES)
def test_every_byte_of_a_file(operator: User, form: str, bites: Any, rows: int, chunks: list[bytes]) -> None:
    done = export(operator, "demo", COLUMNS, lambda _actor: content(bites, rows), filter=FILTER, form=form)
    assert list(done.chunks) == [(csv_head if form == "csv" else json_head)(rows), *chunks]
    assert (done.file_name, done.content_type) == {
        "csv": ("snackops-demo-20270115T075959Z.csv", "text/csv; charset=utf-8"),
        "jsonl": ("snackops-demo-20270115T075959Z.jsonl", "application/jsonl; charset=utf-8"),
    }[form]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_an_instant_beyond_the_calendar(operator: User, form: str) -> None:
    far = 10**18
    done = export(operator, "demo", COLUMNS, lambda _actor: content([], 0, far), filter=FILTER, form=form)
    assert done.file_name == f"snackops-demo-{far}Z.{form}"
    assert list(done.chunks) == [csv_head(0, f"{far} ms") if form == "csv" else json_head(0, f"{far} ms", far)]


# --- the record -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=["console", "cli"])
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_what_the_record_tells(world: World, way: dict[str, str], form: str) -> None:
    by_way(world, way)
    asked: list[Actor] = []

    def read(actor: Actor) -> Content:
        asked.append(actor)
        return content([TWO], 2)

    export(world.oda, "demo", COLUMNS, read, filter=FILTER, form=form, **world.how)  # type: ignore[arg-type]
    assert asked == [Actor(world.oda.pk, "oda", ("operator",), world.channel, world.proof)]
    detail = {"filter": FILTER, "as_of_ms": AS_OF, "rows": 2, "format": form}
    assert told(0) == [world.event(world.oda, "export", "export:demo", **detail)]


def nothing_read(_actor: Actor) -> Content:
    raise AssertionError("nothing is read for somebody who gets no file")


def refused_export(world: World, who: User, **more: Any) -> Refused:
    given = {"filter": FILTER, "form": "csv", **world.how} | more
    with pytest.raises(SnackOpsError) as caught:
        export(who, "demo", COLUMNS, given.pop("read", nothing_read), **given)
    return Refused(type(caught.value), str(caught.value))


@pytest.mark.parametrize("way", WAYS, ids=["console", "cli"])
def test_who_may_not_gets_nothing_and_the_record_tells_it(world: World, way: dict[str, str]) -> None:
    by_way(world, way)
    everybody = "Only operators, team leads and auditors may do this."
    world.tom.groups.clear()
    assert refused_export(world, world.ada, rights=("plan",)) == Refused(NotAllowed, WORKERS)
    assert refused_export(world, world.tom, rights=("plan",)) == Refused(NotAllowed, everybody)
    assert refused_export(world, world.gone()) == Refused(NotAllowed, DEACTIVATED)
    first, second, third = told(0)
    assert [first] == world.refused(world.ada, "plan", "export:demo", WORKERS)
    assert (second.roles, second.detail) == ("", {"tried": "export", "why": everybody})
    assert [third] == world.refused(world.tom, "export", "export:demo", DEACTIVATED)


def test_who_has_every_right_gets_the_file(world: World) -> None:
    done = export(
        world.oda,
        "demo",
        COLUMNS,
        lambda _actor: content([], 0),
        filter=FILTER,
        form="csv",
        rights=("plan", "withdraw"),
    )
    assert list(done.chunks) == [csv_head(0)]
    assert [event.action for event in told(0)] == ["export"]


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("form", "named"), [("", "''"), ("CSV", "'CSV'"), ("x" * 41, f"'{'x' * 40}'...")])
def test_a_format_that_there_is_not(world: World, form: str, named: str) -> None:
    sentence = f"There is no export format {named}."
    assert refused_export(world, world.oda, form=form) == Refused(UnknownFormat, sentence)
    assert told(0) == []


def test_as_many_rows_as_one_file_may_hold_and_no_more(world: World) -> None:
    done = export(world.oda, "demo", COLUMNS, lambda _actor: content([], MAX_ROWS), filter="", form="csv")
    assert b"# rows,1000000,\r\n" in next(iter(done.chunks))
    refused = refused_export(world, world.oda, read=lambda _actor: content([], MAX_ROWS + 1))
    assert refused == Refused(
        TooManyRows, "The filter shows 1,000,001 rows, and one file holds at most 1,000,000. Narrow the filter."
    )
    assert len(told(0)) == 1


@pytest.mark.parametrize("name", ["a", "a-b", "x" * 32])
def test_names_of_exports(operator: User, name: str) -> None:
    done = export(operator, name, COLUMNS, lambda _actor: content([], 0), filter="", form="csv")
    assert done.file_name == f"snackops-{name}-20270115T075959Z.csv"


@pytest.mark.parametrize("name", ["", "A", "-a", "a1", "a\n", "x" * 33])
def test_what_is_no_name_of_an_export(operator: User, name: str) -> None:
    with pytest.raises(ValueError, match=r"^The name of an export is 1 to 32 of a-z and -\.$"):
        export(operator, name, COLUMNS, nothing_read, filter="", form="csv")
    assert told(0) == []


# --- walks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("total", "heard"),
    [
        (0, [(None, 3)]),
        (2, [(None, 3), 2]),
        (3, [(None, 3), 3, REST_S, (3, 3)]),
        (5, [(None, 3), 3, REST_S, (3, 3), 2]),
    ],
)
def test_a_walk_step_by_step(total: int, heard: list[object]) -> None:
    found: list[object] = []

    def read(after: int | None, limit: int) -> list[int]:
        found.append((after, limit))
        return list(range((after or 0) + 1, total + 1))[:limit]

    for bite in in_bites(read, 3, rest=found.append):
        found.append(len(bite))
    assert found == heard


def test_a_walk_takes_two_hundred_at_a_time() -> None:
    limits: list[int] = []

    def read(after: int | None, limit: int) -> Iterator[int]:
        limits.append(limit)
        return iter(())

    assert list(in_bites(lambda after, limit: list(read(after, limit)))) == []
    assert (limits, exports.BITE) == ([200], 200)


def test_between_two_looks_it_rests_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(exports.time, "sleep", slept.append)
    exports.rest()
    assert slept == [REST_S]
