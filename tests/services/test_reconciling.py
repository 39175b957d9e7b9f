"""A comparison with the receiver step by step, as whole values: what is asked, what is summed, what is kept and told.

What each mixture of orders and entries amounts to is in tests/reconciling/test_comparing.py.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import pytest
from django.contrib.auth.models import User

from queue_app.models import Reconciliation
from queue_app.policy.errors import NotAllowed
from queue_app.policy.ledgers import Entry, LedgerPage, Totals
from queue_app.policy.reconciling import Ours
from queue_app.reads import comparisons
from queue_app.services import reconciling
from queue_app.services.people import Actor
from queue_app.services.reconciling import Result
from queue_app.store.chain import Event
from tests.conftest import START_MS as T
from tests.conftest import Clock
from tests.reconciling.conftest import Book, applied, tried
from tests.services.told import told

pytestmark = pytest.mark.django_db


def ours(
    job_id: str, state: str = "done", *, quantity: int = 1, token: int = 1, at_ms: int = T, until: int | None = None
) -> Ours:
    return Ours(job_id, quantity, state, token, at_ms, until, 1_000)


class Pages:
    """A receiver of these pages, each with its own totals, and of what it says afterwards; keeps what it is asked for."""

    def __init__(self, *pages: tuple[Sequence[Entry], Totals], afterwards: Sequence[Entry] = ()) -> None:
        self.pages, self.afterwards = list(pages), afterwards
        self.asked: list[tuple[str | None, int]] = []

    def page(self, after: str | None, limit: int) -> LedgerPage:
        self.asked.append((after, limit))
        if not self.pages:
            return LedgerPage(tuple(self.afterwards), None, totals(0, 0))
        entries, totals_then = self.pages.pop(0)
        return LedgerPage(tuple(entries), entries[-1].id if self.pages else None, totals_then)


class Orders:
    """Our side, in place of the database: what the walk reads, and how it stands when it is read anew."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *walked: Ours, anew: Sequence[Ours] | None = None) -> None:
        self.walked, self.anew = list(walked), list(walked if anew is None else anew)
        self.bites: list[tuple[str | None, int]] = []
        self.again: list[list[str]] = []
        self.meanwhile: Callable[[], object] = lambda: None
        monkeypatch.setattr(comparisons, "bite", self.bite)
        monkeypatch.setattr(comparisons, "orders", self.orders)

    def bite(self, after: str | None, limit: int) -> list[Ours]:
        self.bites.append((after, limit))
        return [one for one in self.walked if after is None or one.id > after][:limit]

    def orders(self, ids: Sequence[str]) -> dict[str, Ours]:
        self.again.append(list(ids))
        self.meanwhile()
        return {one.id: one for one in self.anew if one.id in ids}


def totals(keys: int, stock: int, writes: int | None = None, requests: int = 0) -> Totals:
    return Totals(keys, stock, keys if writes is None else writes, requests)


# --- the whole ------------------------------------------------------------------------------------------------------
def test_a_comparison_tells_both_sides_whole(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Orders(
        monkeypatch,
        ours("a", quantity=5), ours("b", "pruned", quantity=7, at_ms=T - 1), ours("c", "dead", quantity=2),
        ours("d", "pending", token=0), ours("e", "leased", until=T + 50), ours("f", "leased", until=T + 9),
        ours("g", at_ms=T - 1_000),
    )  # fmt: skip
    here.meanwhile = lambda: clock.advance(9)
    there = Pages(
        ([applied("a", 5), applied("b", 3)], totals(4, 10)),
        ([tried("c", 2), applied("e"), applied("f"), tried("h", 9)], totals(6, 30, 8, requests=11)),
    )
    assert reconciling.compare(there, bite=2) == Result(
        started_at_ms=T,
        ended_at_ms=T + 9,
        compared=8,
        differing=5,
        kinds={"quantity": 1, "leased_with_effect": 1, "unknown_here": 1, "double_writes": 2},
        here={"done": 2, "dead": 1, "pending": 1, "leased": 2, "pruned": 1, "done_pieces": 13},
        there={"keys": 6, "stock": 30, "writes": 8, "requests": 11, "rows": 6},
        passing={"in_flight": 1, "forgotten": 1},
        examples=(("quantity", "b"), ("leased_with_effect", "f"), ("unknown_here", "h")),
    )
    assert here.bites == [(None, 2), ("b", 2), ("d", 2), ("f", 2), ("g", 2)]
    assert here.again == [["b", "e", "f", "g", "h"]]
    assert there.asked == [(None, 2), ("b", 2)]


def test_where_nothing_is_on_either_side_nothing_differs(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = Orders(monkeypatch), Pages(([], totals(0, 0)))
    assert reconciling.compare(there) == Result(
        T, T, 0, 0, {}, dict.fromkeys(("done", "dead", "pending", "leased", "pruned", "done_pieces"), 0),
        {"keys": 0, "stock": 0, "writes": 0, "requests": 0, "rows": 0}, {"in_flight": 0, "forgotten": 0}, (),
    )  # fmt: skip
    assert (here.bites, here.again, there.asked) == ([(None, 400)], [[]], [(None, 400)])


@pytest.mark.parametrize(
    ("first", "last", "kinds"),
    [
        (totals(2, 7), totals(2, 7), {}),
        (totals(1, 0), totals(3, 9), {}),  # applied meanwhile
        (totals(3, 7), totals(3, 7), {"totals": 1}),
        (totals(2, 8), totals(2, 8), {"totals": 1}),
        (totals(3, 7), totals(2, 7), {"totals": 1}),
        (totals(2, 7), totals(1, 7, 1), {"totals": 1}),
        (totals(2, 7), totals(2, 7, 5), {"double_writes": 3}),
    ],
)
def test_the_sums_of_the_first_and_the_last_page_are_held_against_what_the_pages_list(
    first: Totals, last: Totals, kinds: dict[str, int], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    Orders(monkeypatch, ours("a", quantity=5), ours("b", quantity=2), ours("c", "dead", quantity=9))
    pages = Pages(
        ([applied("a", 5)], first),
        ([applied("b", 2)], totals(99, 99)),  # only the ends count
        ([tried("c", 9)], last),
    )
    found = reconciling.compare(pages, bite=1)
    assert (found.kinds, found.differing, found.compared) == (kinds, sum(kinds.values()), 3)


def test_a_page_of_one_says_first_and_last(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    Orders(monkeypatch, ours("a"))
    assert reconciling.compare(Pages(([applied("a")], totals(2, 1)))).kinds == {"totals": 1}


def test_ten_ids_of_each_kind_are_kept_and_a_hundred_in_all(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [f"s{n:03}" for n in range(150)]
    Orders(monkeypatch, *(ours(one, "dead", token=0) for one in ids))
    book = Book(*(applied(one, 2) for one in ids))
    found = reconciling.compare(book, bite=50)
    kinds = ("dead_with_effect", "quantity", "more_requests")
    assert found.kinds == dict.fromkeys(kinds, 150)
    assert found.differing == 150
    assert found.examples == tuple((kind, one) for one in ids[:10] for kind in kinds)
    wide = reconciling.compare(book, examples=34).examples
    assert len(wide) == 100
    assert wide[-1] == ("dead_with_effect", "s033")


def test_what_only_moves_is_counted_and_hides_no_difference_of_the_same_order(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    leased = [ours(one, "leased", until=T + 1) for one in ("a", "b", "c")]
    Orders(monkeypatch, *leased, ours("d", at_ms=T - 1_000), ours("e", at_ms=T - 1_001))
    found = reconciling.compare(Book(applied("a"), applied("b", 2), applied("c")))
    assert found.passing == {"in_flight": 3, "forgotten": 2}
    assert (found.kinds, found.differing, found.examples) == ({"quantity": 1}, 1, (("quantity", "b"),))


@pytest.mark.parametrize(("n", "asked"), [(199, [199]), (200, [200, 0]), (201, [200, 1])])
def test_two_hundred_suspects_are_looked_at_again_together(
    n: int, asked: list[int], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Orders(monkeypatch, *(ours(f"s{k:03}") for k in range(n)))
    found = reconciling.compare(Book())
    assert [len(some) for some in here.again] == asked
    assert (found.kinds, found.differing) == ({"no_effect": n}, n)


# --- looking again --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("anew", "at_ms", "alone", "kinds", "asked"),
    [
        # done before the walk began: its entry was read afterwards
        (ours("b", at_ms=T - 1), T, [applied("b")], {"no_effect": 1}, 1),
        # done since then: the entry may be older
        (ours("b", at_ms=T), T, [applied("b")], {}, 2),
        (ours("b", at_ms=T + 5), T + 9, [applied("b")], {}, 2),
        (ours("b", "pruned", at_ms=T), T, [applied("b")], {}, 2),
        (ours("b", at_ms=T), T, [tried("b")], {"no_effect": 1}, 2),
        (ours("b", at_ms=T), T, [applied("c")], {"no_effect": 1}, 2),
        (ours("b", at_ms=T), T, [], {"no_effect": 1}, 2),
        # what is not done is held against the entry at hand
        (ours("b", "pending", at_ms=T + 5), T + 9, [applied("b")], {}, 1),
        # gone, and the receiver does not know it either
        (None, T, [applied("b")], {}, 1),
    ],
)
def test_a_suspect_is_judged_as_it_stands_now(
    anew: Ours | None, at_ms: int, alone: list[Entry], kinds: dict[str, int], asked: int, clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    here = Orders(monkeypatch, ours("b", at_ms=T - 1), anew=[] if anew is None else [anew])
    here.meanwhile = lambda: clock.advance(at_ms - T)
    there = Pages(([], totals(0, 0)), afterwards=alone)
    found = reconciling.compare(there)
    assert (found.kinds, found.differing) == (kinds, sum(kinds.values()))
    assert there.asked == [(None, 400), ("a" + "z" * 63, 1)][:asked]


def test_the_second_look_judges_by_the_instant_after_it_has_read(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Orders(monkeypatch, ours("a", "leased", until=T + 10))
    here.meanwhile = lambda: clock.advance(10)
    assert reconciling.compare(Book(applied("a"))).kinds == {"leased_with_effect": 1}


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("", ""),
        ("a", ""),
        ("", "a"),
        ("a", "a"),
        ("ab", "b"),
        ("b", "ab"),
        ("ac", "bd"),
        ("abc", "abc"),
        ("aBb", "Bab"),
    ],
)
def test_both_sides_are_walked_as_one(here: str, there: str) -> None:
    left = [ours(one) for one in sorted(here)]
    right = [applied(one) for one in sorted(there)]
    by_id = ({one.id: one for one in left}, {one.id: one for one in right})
    assert [*reconciling._merged(iter(left), iter(right))] == [
        (by_id[0].get(one), by_id[1].get(one)) for one in sorted({*here, *there})
    ]


# --- keeping it -----------------------------------------------------------------------------------------------------
RESULT = Result(
    T + 1, T + 2, 7, 3, {"no_effect": 2, "quantity": 1}, {"done": 4, "done_pieces": 9}, {"keys": 2, "rows": 5},
    {"in_flight": 1, "forgotten": 0}, (("no_effect", "a"), ("quantity", "b")),
)  # fmt: skip


@pytest.mark.parametrize("by", ["", "oda", "tom", "ada"])
def test_a_comparison_is_kept_whole_with_its_event(
    by: str, clock: Clock, operator: User, team_lead: User, auditor: User
) -> None:
    clock.now = T + 5
    user = {"oda": operator, "tom": team_lead, "ada": auditor}.get(by)
    number = reconciling.record(RESULT, user)
    row: dict[str, Any] = Reconciliation.objects.values().get()
    row |= {"numbers": json.loads(row["numbers"]), "examples": json.loads(row["examples"])}
    whole = asdict(RESULT)
    assert row == {
        "id": number,
        "actor_id": user.pk if user else None,
        "source": "cli",
        "numbers": {name: whole[name] for name in ("kinds", "here", "there", "passing")},
        "examples": [["no_effect", "a"], ["quantity", "b"]],
        **{name: whole[name] for name in ("started_at_ms", "ended_at_ms", "compared", "differing")},
    }
    detail: dict[str, object] = {"number": number, "compared": 7, "differing": 3}
    if user is None:
        assert told(0) == [Event(T + 5, "reconcile", "receiver", name="reconcile", source="cli", detail=detail)]
        return
    role = {"oda": "operator", "tom": "team_lead", "ada": "auditor"}[by]
    assert told(0) == [Event(T + 5, "reconcile", "receiver", user.pk, by, role, "", "cli", "shell", detail)]


def test_who_may_read_may_compare(auditor: User) -> None:
    assert reconciling.may_compare(auditor) == Actor(auditor.pk, "ada", ("auditor",), "cli", "shell")
    assert told(0) == []


@pytest.mark.parametrize("call", [reconciling.may_compare, lambda user: reconciling.record(RESULT, user)])
@pytest.mark.parametrize(
    ("active", "why"),
    [(True, "Only operators, team leads and auditors may do this."), (False, "This account is deactivated.")],
)
def test_who_may_not_read_keeps_none_and_the_attempt_is_told(
    active: bool, why: str, call: Callable[[User], object], clock: Clock
) -> None:
    nobody = User.objects.create_user("nobody", is_active=active)
    with pytest.raises(NotAllowed) as refused:
        call(nobody)
    assert str(refused.value) == why
    assert not Reconciliation.objects.exists()
    detail: dict[str, object] = {"tried": "read", "why": why}
    assert told(0) == [Event(T, "refused", "receiver", nobody.pk, "nobody", "", "", "cli", "shell", detail)]
