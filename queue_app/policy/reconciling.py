"""What differs between an order here and the same id at the receiver (DESIGN section 6). Pure: two rows in, kinds out.

Acknowledgements alone miss a double write, and totals alone can hide one missing and one double. So ids, effects,
quantities, tries and the receiver's own totals are held against each other.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from queue_app.policy.errors import gettext_noop
from queue_app.policy.ledgers import Entry, Totals

PRUNED = "pruned"  # the state of an order of which only the tombstone is left; it was done
_DONE = frozenset({"done", PRUNED})


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of difference: its name in a table, and what it means and asks for."""

    word: str
    label: str
    meaning: str


# The gravest first: what does not come right by itself.
KINDS = (
    Kind(
        "no_effect",
        gettext_noop("Delivered here, no effect there"),
        gettext_noop(
            "The receiver lost its records, or never did what it acknowledged. These orders do not go out again "
            "by themselves: settle them with the receiver."
        ),
    ),
    Kind(
        "double_writes",
        gettext_noop("Done more than once there"),
        gettext_noop(
            "The receiver counts more writes than ids with an effect, and its list does not say of which orders."
        ),
    ),
    Kind(
        "quantity",
        gettext_noop("Another quantity there"),
        gettext_noop("Somebody else used the id, or a row was changed by hand on one side."),
    ),
    Kind(
        "totals",
        gettext_noop("Totals that the receiver's list does not explain"),
        gettext_noop("Its sums of ids and pieces are not those of the orders that it lists."),
    ),
    Kind(
        "unknown_here",
        gettext_noop("Known to the receiver only"),
        gettext_noop(
            "An old backup may stand in place of the database, or somebody else delivers there. "
            "If the sender repeats these orders, the receiver recognises their ids."
        ),
    ),
    Kind(
        "more_requests",
        gettext_noop("More tries there than were made here"),
        gettext_noop("An old backup may stand in place of the database, or somebody else sends with these ids."),
    ),
    Kind(
        "dead_with_effect",
        gettext_noop("In quarantine here, delivered there"),
        gettext_noop("The effect exists although the try counted as failed. This receiver does nothing twice."),
    ),
    Kind(
        "leased_with_effect",
        gettext_noop("Being delivered here past its time, delivered there"),
        gettext_noop("Its worker was lost after the delivery. The next one takes it over and learns that it is known."),
    ),
    Kind(
        "pending_with_effect",
        gettext_noop("Waiting for delivery here, delivered there"),
        gettext_noop("The answer was lost. It will be delivered again, and the receiver recognises its id."),
    ),
)
KIND_WORDS = tuple(kind.word for kind in KINDS)
IN_FLIGHT, FORGOTTEN = "in_flight", "forgotten"


@dataclass(frozen=True, slots=True)
class Ours:
    """An order as it stands here. `changed_at_ms` of a pruned one is when it was done; its `token` is not known (0).

    `keeps_ms`: how long the receiver of its queue promises to know an id.
    """

    id: str
    quantity: int
    state: str
    token: int
    changed_at_ms: int
    lease_until: int | None
    keeps_ms: int

    @property
    def done(self) -> bool:
        """Whether it ended well, also if only its tombstone is left."""
        return self.state in _DONE


def differences(ours: Ours | None, theirs: Entry | None, now_ms: int) -> tuple[str, ...]:
    """Every way in which the two differ, () when they agree. `in_flight` and `forgotten` are no differences.

    Sound when `theirs` was read after a done `ours`, and any other `ours` after `theirs`: an effect comes before the
    record of it. A receiver may see a request twice for one token, because a kept connection that turned out to be
    closed is replaced by one more; above that nobody of ours can have sent it.
    """
    if ours is None:
        return () if theirs is None else ("unknown_here",)
    found = [*_of_effect(ours, theirs, now_ms)]
    if theirs is not None and theirs.quantity != ours.quantity:
        found.append("quantity")
    if theirs is not None and ours.state != PRUNED and theirs.requests > 2 * ours.token:
        found.append("more_requests")
    return tuple(found)


def _of_effect(ours: Ours, theirs: Entry | None, now_ms: int) -> Iterable[str]:
    applied = theirs is not None and theirs.applied
    if ours.done and not applied:
        expired = theirs is None and ours.changed_at_ms + ours.keeps_ms <= now_ms
        yield FORGOTTEN if expired else "no_effect"
    elif applied and not ours.done:
        alive = ours.lease_until is not None and ours.lease_until > now_ms
        yield IN_FLIGHT if alive else f"{ours.state}_with_effect"


def of_totals(first: Totals, last: Totals, keys: int, stock: int) -> dict[str, int]:
    """What the receiver's sums say by themselves, and against the ids and pieces counted over its pages.

    `first` and `last` came with the first and the last page; orders applied meanwhile lie between them.
    """
    doubled = max(0, last.writes - last.keys)
    explained = first.keys <= keys <= last.keys and first.stock <= stock <= last.stock
    return {"double_writes": doubled, "totals": 0 if explained or doubled else 1}
