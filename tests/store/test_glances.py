"""What a turn asks at once, and what becomes of the answers: with and without ends, with and without a look ahead."""

from types import SimpleNamespace

import pytest

from queue_app.policy.queues import QueuePolicy
from queue_app.store import ends, given, glances, jobs, queues
from queue_app.store.ends import HeldRow
from queue_app.store.glances import Glance
from queue_app.store.jobs import JobRow
from queue_app.store.queues import Standing
from tests.store.changed import Asked
from tests.store.rows import AT

SNACKS = QueuePolicy("snacks")
STANDS = (*(getattr(SNACKS, field) for field in queues._FIELDS), 1, AT + 1)
HELD = HeldRow("a", "snacks", "leased", 5, 2, 4, 8, AT + 3, "w9", 6, False)
DUE = [
    JobRow(name, "snacks", 1, "{}", "", "pending", "", "", 0, 3, 0, None, None, AT, AT + 9, AT, 0, None, 0)
    for name in "bc"
]
NOW, MACHINES, OWN = AT + 7, AT + 3, AT + 1  # the caller's instant, this machine's clock, the clock of the look itself


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, postgresql: bool) -> Asked:
    """The database of all these modules, with one answer for each statement."""
    fake = Asked().stand_in(monkeypatch, glances, queues, ends, jobs, given, postgresql=postgresql)
    monkeypatch.setattr(glances, "now_ms", lambda: MACHINES)
    monkeypatch.setattr(queues, "now_ms", lambda: MACHINES)
    return fake


@pytest.mark.parametrize("postgresql", [False, True])
@pytest.mark.parametrize("stands", [True, False])
@pytest.mark.parametrize("at_ms", [None, NOW])
@pytest.mark.parametrize("ended", [[], ["a"]])
@pytest.mark.parametrize(("ahead", "due"), [(0, None), (2, []), (2, DUE[:1]), (2, DUE)])
def test_one_look_tells_it_all(
    asked: Asked, postgresql: bool, stands: bool, at_ms: int | None, ended: list[str], ahead: int,
    due: list[JobRow] | None,
) -> None:  # fmt: skip
    sought = MACHINES if at_ms is None and not postgresql else at_ms
    rows = [(*one, NOW + 2) if sought is None else tuple(one) for one in due or []]
    asked._answers = [[STANDS] if stands else [], *([[HELD]] if ended else []), rows]
    answer = glances.glance("snacks", ended, at_ms, ahead)
    look_ms = NOW + 2 if due else OWN
    moment = look_ms if sought is None else sought
    assert answer == Glance(Standing(SNACKS, True, moment) if stands else None, {"a": HELD} if ended else {}, due)
    assert asked.statements == [
        queues.standing_statement("snacks"),
        *([ends.held_statement(ended)] if ended else []),
        *([jobs.due_statement("snacks", sought, ahead)] if ahead else []),
    ]
    assert asked.last == [False]


@pytest.mark.parametrize(
    ("postgresql", "at_ms", "moment", "together"),
    [(False, None, MACHINES, False), (False, NOW, NOW, False), (True, NOW, NOW, False), (True, None, NOW + 2, True)],
)
def test_the_instant_and_what_ends_name(
    monkeypatch: pytest.MonkeyPatch, asked: Asked, at_ms: int | None, moment: int, together: bool
) -> None:
    held = asked.statements if together else list[object]()
    monkeypatch.setattr(
        glances, "ends", SimpleNamespace(
            held=lambda ended: held.append(ended) or {"a": HELD}, held_statement=ends.held_statement, held_of=ends.held_of,
        ),
    )  # fmt: skip
    asked._answers = [[(NOW + 2,)], [HELD]]
    assert glances.held_now(["a"], at_ms) == (moment, {"a": HELD})
    assert held == ([("SELECT snackops_now_ms()", []), ends.held_statement(["a"])] if together else [["a"]])
    assert asked.last == [False] * together
