"""When the receiver fails on purpose. Pure: the same rule, id and request number always give the same answer.

A fault is a JSON object. One of these says what happens:
- `status` 400 to 599: this answer, and no effect
- `drop` "before": the connection ends without answer and effect; "after": the effect stays, the answer is lost
- `delay_ms` 1 to 60,000: the answer waits; alone, or added to one of the two above
One of these says to whom:
- `ids`: a list of ids
- `share` 0 to 1: of the requests; with `for_good` true: of the ids, and those fail every time
`first` N limits it to the first N requests of an id. `name` seeds the choice and must differ between faults; without
one the fault is called by what it does ("503", "drop after", "delay"). The first fault that fits a request wins.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from queue_app.receiver import strict_json
from queue_app.receiver.orders import is_id

MAX_FAULTS = 100
MAX_DELAY_MS = 60_000
MAX_FIRST = 1_000_000
_FIELDS = {"name", "status", "drop", "delay_ms", "ids", "share", "for_good", "first"}


@dataclass(frozen=True, slots=True)
class Fault:
    """One rule; see the module for its fields. `status` 0, `drop` "" and `first` 0 mean that there is none."""

    name: str
    status: int = 0
    drop: str = ""
    delay_ms: int = 0
    ids: tuple[str, ...] = ()
    share: float = 0.0
    for_good: bool = False
    first: int = 0

    @property
    def prevents_effect(self) -> bool:
        """Whether the order must not be recorded."""
        return bool(self.status) or self.drop == "before"

    def fits(self, order_id: str, number: int) -> bool:
        """Whether this fault hits the request with this number (from 1) of this id."""
        if self.first and number > self.first:
            return False
        if self.ids:
            return order_id in self.ids
        seed = f"{self.name}\n{order_id}" if self.for_good else f"{self.name}\n{order_id}\n{number}"
        drawn = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8])
        return drawn < self.share * 2**64

    def as_json(self) -> dict[str, Any]:
        """The fields that were set, as `read_faults` takes them."""
        fields: dict[str, Any] = {"name": self.name}
        for key in ("status", "drop", "delay_ms", "for_good", "first"):
            if getattr(self, key):
                fields[key] = getattr(self, key)
        if self.ids:
            fields["ids"] = list(self.ids)
        else:
            fields["share"] = self.share
        return fields


def choose(faults: Sequence[Fault], order_id: str, number: int) -> Fault | None:
    """The fault that hits this request, or None. `number` counts the requests of this id from 1."""
    return next((fault for fault in faults if fault.fits(order_id, number)), None)


def read_faults(raw: bytes) -> tuple[Fault, ...]:
    """The faults in a JSON text `{"faults": [...]}`. Raises ValueError with one sentence."""
    document = strict_json.read(raw)
    if not isinstance(document, dict) or set(document) != {"faults"}:
        raise ValueError('Send a JSON object with the one field "faults".')
    return check_faults(document["faults"])


def check_faults(rules: object) -> tuple[Fault, ...]:
    """The faults in a list of JSON objects. Raises ValueError with one sentence that names the rule by its place."""
    if not isinstance(rules, list) or len(rules) > MAX_FAULTS:
        raise ValueError(f"The faults must be a list of at most {MAX_FAULTS}.")
    faults = []
    for place, rule in enumerate(rules, start=1):
        try:
            faults.append(_fault(rule))
        except ValueError as error:
            raise ValueError(f"Fault {place}: {error}") from None
    names = [fault.name for fault in faults]
    if len(set(names)) != len(names):
        raise ValueError("Two faults have the same name; the choice needs different names.")
    return tuple(faults)


def _fault(rule: object) -> Fault:
    if not isinstance(rule, dict):
        raise ValueError("it must be a JSON object.")
    if unknown := set(rule) - _FIELDS:
        raise ValueError(f"it has {len(unknown)} unknown field(s); known are {', '.join(sorted(_FIELDS))}.")
    status = _whole(rule, "status", 400, 599)
    delay_ms = _whole(rule, "delay_ms", 1, MAX_DELAY_MS)
    drop = rule.get("drop", "")
    if "drop" in rule and drop not in ("before", "after"):
        raise ValueError('drop must be "before" or "after".')
    if status and drop:
        raise ValueError("it may have a status or a drop, not both.")
    if not (status or drop or delay_ms):
        raise ValueError("it needs a status, a drop or a delay_ms.")
    name = rule.get("name", str(status) if status else f"drop {drop}" if drop else "delay")
    if not isinstance(name, str) or not 1 <= len(name) <= 64 or not name.isascii() or not name.isprintable():
        raise ValueError("its name must be 1 to 64 printable ASCII characters.")
    return Fault(name, status, drop, delay_ms, *_targets(rule), first=_whole(rule, "first", 1, MAX_FIRST))


def _targets(rule: dict[str, Any]) -> tuple[tuple[str, ...], float, bool]:
    """`ids`, `share`, `for_good` of a rule: exactly one of the first two, the third only with a share."""
    if ("ids" in rule) == ("share" in rule):
        raise ValueError("it needs either ids or a share.")
    for_good = rule.get("for_good", False)
    if type(for_good) is not bool:
        raise ValueError("for_good must be true or false.")
    if "share" in rule:
        share = rule["share"]
        if type(share) not in (int, float) or not 0 <= share <= 1:
            raise ValueError("share must be a number from 0 to 1.")
        return (), float(share), for_good
    ids = rule["ids"]
    if for_good:
        raise ValueError("for_good belongs to a share; listed ids fail every time anyway.")
    if not isinstance(ids, list) or not ids or not all(is_id(item) for item in ids):
        raise ValueError("ids must be a list of one or more ids.")
    return tuple(ids), 0.0, False


def _whole(rule: dict[str, Any], key: str, low: int, high: int) -> int:
    """The whole number under `key`, or 0 when the rule has none."""
    if key not in rule:
        return 0
    value = rule[key]
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{key} must be a whole number from {low:,} to {high:,}.")
    return value
