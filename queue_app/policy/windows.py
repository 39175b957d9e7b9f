"""Pieces of time: windows of the pages, local times typed by people, and spans cut into what counters hold.

Pure: instants are ms since the epoch, zones and limits are arguments.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Literal

from queue_app.policy.orders import MAX_INSTANT_MS

MINUTE_MS = 60_000
HOUR_MS = 3_600_000
DAY_MS = 86_400_000
MINUTES_KEPT_MS = 8 * DAY_MS
"""How long housekeeping keeps the counters of single minutes; those of hours stay for ever."""
MINUTES_USED_MS = 7 * DAY_MS + 12 * HOUR_MS
"""How far back minutes are relied on; older times are counted by whole hours. Less than they are kept, so that a page
which is older than the last housekeeping never misses any."""

WINDOWS: dict[str, int | None] = {
    "1h": HOUR_MS,
    "3h": 3 * HOUR_MS,
    "24h": DAY_MS,
    "3d": 3 * DAY_MS,
    "7d": 7 * DAY_MS,
    "all": None,
}
"""Name in the address -> length; None has no beginning."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,3}))?)?)?"
    r"(?:(Z)|([+-])([0-9]{2}):([0-9]{2}))?"
)


def window_start_ms(length_ms: int, as_of_ms: int) -> int:
    """Where a window of this length begins: on a whole minute, which the page shows as "since HH:MM"."""
    return max(0, floor(as_of_ms - length_ms, MINUTE_MS))


def floor(at_ms: int, span_ms: int) -> int:
    """The last multiple of the span that is not after the instant."""
    return at_ms - at_ms % span_ms


def ceiling(at_ms: int, span_ms: int) -> int:
    """The first multiple of the span that is not before the instant."""
    return -floor(-at_ms, span_ms)


# --- spans in pieces ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pieces:
    """A half-open span cut up: whole hours, whole minutes, and the ragged ends that only rows can tell."""

    hours: tuple[tuple[int, int], ...]
    minutes: tuple[tuple[int, int], ...]
    rows: tuple[tuple[int, int], ...]


def pieces(from_ms: int, to_ms: int, as_of_ms: int) -> Pieces:
    """Cut [from, to) so that as few rows as possible must be counted one by one. Empty when from >= to.

    Hours where whole hours fit, minutes around them as long as minutes are kept, rows for what is left.
    """
    if from_ms >= to_ms:
        return Pieces((), (), ())
    border = ceiling(as_of_ms - MINUTES_USED_MS, HOUR_MS)  # a whole hour: what is cut beyond it is cut by minutes
    first = ceiling(from_ms, MINUTE_MS if from_ms >= border else HOUR_MS)
    last = floor(to_ms, MINUTE_MS if to_ms >= border else HOUR_MS)
    if first >= last:
        return Pieces((), (), ((from_ms, to_ms),))
    hour_first, hour_last = ceiling(first, HOUR_MS), floor(last, HOUR_MS)
    if hour_first >= hour_last:
        return Pieces((), ((first, last),), _real((from_ms, first), (last, to_ms)))
    return Pieces(
        ((hour_first, hour_last),),
        _real((first, hour_first), (hour_last, last)),
        _real((from_ms, first), (last, to_ms)),
    )


def _real(*spans: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple(span for span in spans if span[0] < span[1])


# --- local times ----------------------------------------------------------------------------------------------------


def local_instant_ms(text: str, zone: tzinfo, end: Literal["from", "to"]) -> int | None:
    """The instant of a typed local time such as 2026-11-29T02:30, or None if it is none or beyond the calendar.

    A time that the clocks pass twice means the first passing for `from` and the second for `to`, so that a span holds
    both. A time that the clocks skip means the instant of the jump. With `Z` or an offset the zone is not asked.
    """
    match = _LOCAL.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zulu, sign, off_hours, off_minutes = match.groups()
    try:
        local = datetime(  # noqa: DTZ001 - the zone is put on below
            int(year),
            int(month),
            int(day),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            int((fraction or "0").ljust(3, "0")) * 1000,
        )
        if zulu:
            return _known(_ms(local.replace(tzinfo=UTC)))
        if sign:
            offset = timedelta(hours=int(off_hours), minutes=int(off_minutes))
            return _known(_ms(local.replace(tzinfo=timezone(-offset if sign == "-" else offset))))
        return _known(_in_zone(local, zone, end))
    except (ValueError, OverflowError):
        return None


def _in_zone(local: datetime, zone: tzinfo, end: str) -> int:
    first, second = (_ms(local.replace(tzinfo=zone, fold=fold)) for fold in (0, 1))
    if second < first:
        return _jump(second, first, zone)
    return first if end == "from" else second


def _jump(low: int, high: int, zone: tzinfo) -> int:
    """The instant within (low, high] at which the offset of the zone changes."""
    before = _offset(low, zone)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(middle, zone) == before:
            low = middle
        else:
            high = middle
    return high


def _offset(at_ms: int, zone: tzinfo) -> timedelta | None:
    return (_EPOCH + timedelta(milliseconds=at_ms)).astimezone(zone).utcoffset()


def _ms(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _known(at_ms: int) -> int | None:
    return at_ms if 0 <= at_ms <= MAX_INSTANT_MS else None
