"""Words of the record: every action that the product writes has its sentence, and nothing stored becomes markup."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from queue_app.policy.audit_actions import ACTIONS, SENTENCES, TONES
from queue_app.reads.audit import EventRow
from queue_app.templatetags import audit_words
from queue_app.templatetags.look import ICONS
from tests.conftest import BASE_DIR

ROW = EventRow(1, 1, 0, 1, "oda", "operator", "export", "export:audit", "", "console", "session", "{}", "", "", 1)


def row(**changes: object) -> EventRow:
    return replace(ROW, **changes)  # type: ignore[arg-type]


def text(event: EventRow) -> str:
    return re.sub(r"<[^>]+>", "", audit_words.event_sentence(event))


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        (row(), "oda exported the audit record"),
        (row(action="plan.ask", target="plan:7"), "oda asked for Redrive R-7"),
        (row(action="plan.approve", target="plan:7", detail='{"round":2}'), "oda let Redrive R-7 go on"),
        (row(action="batch.begin", target="plan:7", detail='{"first":false}'), "Redrive R-7 went on"),
        (row(action="batch.pause", target="plan:7"), "oda paused Redrive R-7"),
        (row(action="batch.pause", target="plan:7", actor_id=None, source="redriver"), "Redrive R-7 paused by itself"),
        (row(action="investigate", target="group:snacks/permanent/http_422"), "of the cause http_422 in snacks"),
        (row(action="investigate", target="group:snacks/permanent/"), "the cause refused by receiver in snacks"),
        (row(action="refused", target="plan:7", detail='{"tried":"approve"}'), "oda was refused: approve, Redrive R-7"),
        (row(action="refused", target="x:1", detail='{"tried":"fly"}'), "oda was refused: fly, x:1"),
        (row(action="refused", target="page:group_list", detail='{"tried":"read"}'), "refused: read, the page Causes"),
        (row(action="refused", target="page:overview_live", detail='{"tried":"read"}'), "read, the page Overview"),
        (row(action="refused", target="page:job", detail='{"tried":"read"}'), "oda was refused: read, the page Orders"),
        (row(action="refused", target="page:moon", detail='{"tried":"read"}'), "oda was refused: read, the page moon"),
        (
            row(action="refused", target="export:redrive", detail='{"tried":"export"}'),
            "export, the orders of a redrive",
        ),
        (row(action="drain_worker", target="worker:w-1"), "oda let worker w-1 finish and end"),
        (
            row(action="refused", target="identity:unknown", actor_id=None, name="", detail='{"tried":"sign_in"}'),
            "Somebody was refused: sign in, a name that nobody has",
        ),
        (row(action="account_set", target="user:4", actor_id=None, source="cli"), "The command line set up or changed"),
        (row(action="moon", target="moon:1"), "oda: moon, moon:1"),
        (row(action="redrive", target="job:a-1", name="100% %(what)s"), "100% %(what)s redrove order a-1"),
    ],
)
def test_a_row_is_a_sentence(event: EventRow, sentence: str) -> None:
    assert sentence in text(event)


HOSTILE = '<script>"x"</script>'


@pytest.mark.parametrize("field", ["name", "action", "target", "note", "source", "detail"])
@pytest.mark.parametrize(
    "prefix", ["", "job:", "plan:", "group:", "export:", "user:", "group:a/b/", "page:", "page:group_", "worker:"]
)
def test_nothing_stored_becomes_markup(field: str, prefix: str) -> None:
    for action in ("export", "moon", "refused"):
        for detail in ("{}", '{"tried":"<script>"}', "[1]", "{"):
            event = row(**{"action": action, "detail": detail, field: prefix + HOSTILE})
            assert "<script>" not in audit_words.event_sentence(event)


def test_every_action_that_the_product_writes_has_a_sentence_and_a_word() -> None:
    source = "\n".join(path.read_text() for path in Path(BASE_DIR, "queue_app").rglob("*.py"))
    written = set(re.findall(r'\.event\(\s*"([a-z_.]+)"', source)) | set(
        re.findall(r' Event\([^"]*"([a-z_.]+)"', source)
    )
    assert {"plan.ask", "batch.tick", "investigate", "refused", "export"} <= written
    assert written <= set(SENTENCES)
    assert set(SENTENCES) == set(ACTIONS)


def test_every_mark_of_an_event_can_be_drawn() -> None:
    assert {audit_words.event_icon(action) for action in (*TONES, *ACTIONS, "moon")} <= set(ICONS)
