"""The policy of a queue as a plain value (DESIGN section 4, "Defaults of a queue"), and whether it can work at all."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from queue_app.policy.errors import SnackOpsError, gettext_noop
from queue_app.policy.refusals import shown

YEAR_MS = 365 * 86_400_000


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """Durations in ms, rates in thousandths of a job per second. None where the queue sets no such limit: `wait_budget_ms`,
    `max_unfinished`, `delivery_rate_mj`, `done_kept_ms` (done orders stay for ever). `breaker_after` 0: it never opens.
    """

    name: str
    ordering: str = "independent"
    max_attempts: int = 3
    budget_ms: int = 86_400_000
    wait_base_ms: int = 1_000
    wait_cap_ms: int = 300_000
    wait_budget_ms: int | None = None
    lease_ms: int = 30_000
    redrive_horizon_ms: int = 2_592_000_000
    rate_mj: int = 5_000
    max_unfinished: int | None = None
    accepting: bool = True
    paused: bool = False
    delivery_rate_mj: int | None = None
    breaker_after: int = 20
    breaker_wait_ms: int = 30_000
    done_kept_ms: int | None = None
    receiver_keeps_ms: int = 7_776_000_000


class InvalidLimit(SnackOpsError, ValueError):
    """A limit that a queue cannot have; `field` names which."""

    def __init__(self, field: str, template: str, **values: object) -> None:
        super().__init__(template, **values)
        self.field = field


class UnknownQueue(SnackOpsError, LookupError):
    """No queue of this name is declared."""


# What a team lead may change while everything runs: the field, its bounds, whether None means "no such limit".
LIMITS: dict[str, tuple[int, int, bool]] = {
    "max_unfinished": (1, 1_000_000_000, True),
    "delivery_rate_mj": (1, 1_000_000_000, True),
    "breaker_after": (0, 1_000_000, False),
    "breaker_wait_ms": (1_000, 86_400_000, False),
    "wait_budget_ms": (1, YEAR_MS, True),
    "done_kept_ms": (86_400_000, 10 * YEAR_MS, True),
    "receiver_keeps_ms": (1, 100 * YEAR_MS, False),
}


def with_limits(policy: QueuePolicy, changes: Mapping[str, object]) -> QueuePolicy:
    """The policy with these limits; InvalidLimit for an unknown one, a value out of bounds, or a retention too short."""
    for field, value in changes.items():
        if field not in LIMITS:
            raise InvalidLimit("limits", gettext_noop("A queue has no limit %(value)s."), value=shown(field))
        low, high, optional = LIMITS[field]
        if value is None and optional:
            continue
        if type(value) is not int or not low <= value <= high:
            raise InvalidLimit(
                field,
                gettext_noop("%(limit)s must be a whole number from %(low)s to %(high)s."),
                limit=field,
                low=f"{low:,}",
                high=f"{high:,}",
            )
    changed = replace(policy, **changes)  # type: ignore[arg-type]
    check_retention(changed)
    return changed


def check_times(total_ms: int, lease_ms: int) -> None:
    """ValueError with a sentence unless one delivery surely ends within its lease (DESIGN section 6); both in ms."""
    if total_ms >= lease_ms:
        raise ValueError(
            f"The total time of a delivery ({total_ms} ms) must be below the lease ({lease_ms} ms): "
            "otherwise a second worker sends an order that the first is still sending."
        )


def check_retention(policy: QueuePolicy) -> None:
    """InvalidLimit unless the receiver knows an id for longer than it may still be sent again (DESIGN section 6)."""
    longest = policy.redrive_horizon_ms + policy.budget_ms
    if policy.receiver_keeps_ms <= longest:
        raise InvalidLimit(
            "receiver_keeps_ms",
            gettext_noop(
                "The receiver of the queue %(queue)s keeps an id for %(keeps)s ms, which must be above redrive horizon "
                "plus budget (%(longest)s ms): otherwise it takes an order that is sent again for a new one."
            ),
            queue=policy.name,
            keeps=f"{policy.receiver_keeps_ms:,}",
            longest=f"{longest:,}",
        )


def check_start(policy: QueuePolicy, *, total_ms: int, lease_ms: int | None) -> None:
    """Whether a worker may begin on this queue: ValueError with one sentence if a setting would send orders twice."""
    check_times(total_ms, policy.lease_ms if lease_ms is None else lease_ms)
    check_retention(policy)
