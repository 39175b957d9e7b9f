"""Two rows of one id: every combination of states has its verdict."""

import itertools

import pytest

from queue_app.policy.ledgers import Entry, Totals
from queue_app.policy.reconciling import KIND_WORDS, Ours, differences, of_totals

NOW, KEEPS = 1_000_000, 10_000


def ours(state: str, *, quantity: int = 3, token: int = 1, changed: int = NOW - 100, lease: int | None = None) -> Ours:
    return Ours("a", quantity, state, token, changed, lease, KEEPS)


APPLIED, TRIED = Entry("a", 3, NOW - 50, 1), Entry("a", 3, None, 1)
OLD = NOW - KEEPS

TABLE = [
    # nothing, or nothing to say
    (None, None, ()),
    (ours("pending"), None, ()),
    (ours("pending"), TRIED, ()),
    (ours("dead"), None, ()),
    (ours("dead"), TRIED, ()),
    (ours("leased", lease=NOW), TRIED, ()),
    (ours("done"), APPLIED, ()),
    (ours("pruned", token=0), APPLIED, ()),
    # no effect of what is done
    (ours("done"), None, ("no_effect",)),
    (ours("done"), TRIED, ("no_effect",)),
    (ours("pruned", token=0), None, ("no_effect",)),
    (ours("done", changed=OLD + 1), None, ("no_effect",)),
    (ours("done", changed=OLD), None, ("forgotten",)),
    (ours("pruned", token=0, changed=OLD), None, ("forgotten",)),
    (ours("done", changed=OLD), TRIED, ("no_effect",)),  # it remembers the id, and no effect
    # an effect of what is not done
    (ours("dead"), APPLIED, ("dead_with_effect",)),
    (ours("pending"), APPLIED, ("pending_with_effect",)),
    (ours("leased", lease=NOW + 1), APPLIED, ("in_flight",)),
    (ours("leased", lease=NOW), APPLIED, ("leased_with_effect",)),
    (None, APPLIED, ("unknown_here",)),
    (None, TRIED, ("unknown_here",)),
    # quantities, with and without an effect
    (ours("done", quantity=4), APPLIED, ("quantity",)),
    (ours("dead", quantity=4), APPLIED, ("dead_with_effect", "quantity")),
    (ours("done", quantity=4), TRIED, ("no_effect", "quantity")),
    (ours("pruned", quantity=2, token=0), APPLIED, ("quantity",)),
    # requests: one token may have sent two
    (ours("dead", token=1), Entry("a", 3, None, 2), ()),
    (ours("dead", token=1), Entry("a", 3, None, 3), ("more_requests",)),
    (ours("pending", token=0), TRIED, ("more_requests",)),
    (ours("pending", token=0), APPLIED, ("pending_with_effect", "more_requests")),
    (ours("pruned", token=0), Entry("a", 3, NOW, 99), ()),  # its token is gone with it
]


@pytest.mark.parametrize(("here", "there", "expected"), TABLE)
def test_two_rows_differ_as_the_table_says(here: Ours | None, there: Entry | None, expected: tuple[str, ...]) -> None:
    assert differences(here, there, NOW) == expected


def test_every_kind_that_can_be_found_has_its_words() -> None:
    states = [
        None,
        *(
            ours(state, token=token, lease=NOW)
            for state in ("done", "dead", "pending", "leased", "pruned")
            for token in (0, 1)
        ),
    ]
    entries = [None, APPLIED, TRIED, Entry("a", 4, None, 9)]
    found = {kind for pair in itertools.product(states, entries) for kind in differences(*pair, NOW)}
    found |= set(of_totals(Totals(0, 0, 0, 0), Totals(0, 0, 0, 0), 0, 0))
    assert found - {"in_flight", "forgotten"} == set(KIND_WORDS)


@pytest.mark.parametrize(
    ("first", "last", "keys", "stock", "expected"),
    [
        (Totals(3, 9, 3, 3), Totals(3, 9, 3, 3), 3, 9, (0, 0)),
        (Totals(3, 9, 3, 3), Totals(5, 20, 5, 9), 4, 10, (0, 0)),  # orders were applied during the walk
        (Totals(3, 9, 3, 3), Totals(3, 9, 3, 3), 2, 9, (0, 1)),
        (Totals(3, 9, 3, 3), Totals(3, 9, 3, 3), 4, 9, (0, 1)),
        (Totals(3, 9, 3, 3), Totals(3, 9, 3, 3), 3, 8, (0, 1)),
        (Totals(3, 9, 3, 3), Totals(3, 9, 3, 3), 3, 10, (0, 1)),
        (Totals(2, 9, 3, 3), Totals(2, 9, 3, 3), 2, 6, (1, 0)),  # the second write explains the pieces
        (Totals(2, 9, 5, 3), Totals(2, 9, 5, 3), 2, 9, (3, 0)),
    ],
)
def test_the_receivers_totals_must_be_explained_by_its_rows(
    first: Totals, last: Totals, keys: int, stock: int, expected: tuple[int, int]
) -> None:
    assert of_totals(first, last, keys, stock) == dict(zip(("double_writes", "totals"), expected, strict=True))
