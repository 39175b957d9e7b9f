"""Words and figures on screens: instants, ages, numbers, and the people's words of DESIGN section 12.

An id is never passed through these filters: ids are shown as they are.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache

from django import template
from django.utils import timezone
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from queue_app import clock

register = template.Library()

_MINUTE, _HOUR, _DAY = 60_000, 3_600_000, 86_400_000
NONE = "–"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def local_time(at_ms: int) -> datetime | None:
    """The instant in the person's zone, or None beyond the years that a calendar knows."""
    try:
        return timezone.localtime(_EPOCH + timedelta(milliseconds=at_ms))
    except (OverflowError, ValueError):
        return None


def zone_name(moment: datetime) -> str:
    """`JST`, `CEST`; zones without letters are shown by their distance, `UTC-03`."""
    name = moment.tzname() or "UTC"
    return f"UTC{name}" if name[0] in "+-" else name


def _time_element(at_ms: int | None, form: Callable[[datetime], str]) -> SafeString | str:
    if at_ms is None or isinstance(at_ms, str):
        return NONE
    moment = local_time(at_ms)
    if moment is None:
        return f"{at_ms} ms"
    exact = f"{moment.astimezone(UTC).isoformat(timespec='milliseconds')[:23]}Z"
    # Made of digits and a zone's name only; a list has hundreds of them, so nothing else is escaped.
    html = f'<time datetime="{exact}" title="{_full(moment)}">{form(moment)}</time>'
    return mark_safe(html)  # noqa: S308


def _full(moment: datetime) -> str:
    return f"{moment.isoformat(' ', 'seconds')[:19]} {_safe_name(zone_name(moment))}"


@cache
def _safe_name(zone: str) -> str:
    return escape(zone)


@register.filter
def instant(at_ms: int | None) -> SafeString | str:
    """Milliseconds since the epoch as local time to the second, with its zone: `2026-11-29 03:12:05 JST`."""
    return _time_element(at_ms, _full)


@register.filter
def moment(at_ms: int | None) -> SafeString | str:
    """The same, short, for sentences and cells: `03:12` today, `11-27 03:12` this year, else with the year.

    The zone stands in the page's footer and in the element's title.
    """
    now = local_time(clock.now_ms())

    def form(at: datetime) -> str:
        if now and at.date() == now.date():
            return f"{at:%H:%M}"
        return f"{at:%m-%d %H:%M}" if now and at.year == now.year else f"{at:%Y-%m-%d %H:%M}"

    return _time_element(at_ms, form)


@register.filter
def age(span_ms: int | None) -> str:
    """A span of ms in words: `45 s`, `3 min`, `2 h 5 min`, `1 day 4 h`, `4 days`; below zero `in the future`."""
    if span_ms is None or isinstance(span_ms, str):
        return NONE
    if span_ms < 0:
        return _("in the future")
    if span_ms < _MINUTE:
        return _("%(s)d s") % {"s": span_ms // 1000}
    if span_ms < _HOUR:
        return _("%(min)d min") % {"min": span_ms // _MINUTE}
    hours, minutes = span_ms // _HOUR, span_ms % _HOUR // _MINUTE
    if span_ms < _DAY:
        return _("%(h)d h %(min)d min") % {"h": hours, "min": minutes} if minutes else _("%(h)d h") % {"h": hours}
    days, rest = span_ms // _DAY, span_ms % _DAY // _HOUR
    if days < 3 and rest:
        return ngettext("%(d)d day %(h)d h", "%(d)d days %(h)d h", days) % {"d": days, "h": rest}
    return ngettext("%(d)d day", "%(d)d days", days) % {"d": days}


@register.simple_tag
def age_of(at_ms: int | None, now_ms: int | None = None) -> str:
    """Age of an instant at another: `{% age_of job.changed_at_ms page.as_of_ms %}`; without the second, now."""
    if at_ms is None:
        return NONE
    return age((clock.now_ms() if now_ms is None else now_ms) - at_ms)


@register.filter
def number(value: int | None) -> str:
    """Digits in groups, for text only, never for an id, a value in a form or an address: `1,234,567`."""
    if value is None or isinstance(value, str):
        return NONE
    return mark_safe(f"{value:,}")  # noqa: S308 - digits and commas; a list has hundreds of them


@register.filter
def filled(pattern: str, value: str) -> str:
    """A sentence that was translated once for a long list, with each row's own value in the place of its `{}`."""
    return pattern.replace("{}", value)


@register.simple_tag
def share(part: int, whole: int) -> str:
    """Part of whole in per cent; of nothing it is `none`. Something is never 0 %, and not all is never 100 %."""
    if whole <= 0:
        return pgettext("share of nothing", "none")
    if 0 < part * 200 < whole:
        return "<1%"
    if part < whole and part * 200 >= whole * 199:
        return ">99%"
    return f"{(part * 200 + whole) // (whole * 2)}%"


@register.filter
def state_word(state: str, redriven: int = 0) -> str:
    """People's word for a job's state; `{{ job.state|state_word:job.redriven }}` also tells what came back."""
    if state == "dead":
        return _("back in quarantine") if redriven else _("in quarantine")
    words = {
        "pending": _("waiting for delivery"),
        "leased": _("being delivered"),
        "done": _("delivered"),
    }
    return words.get(state, state)


@register.simple_tag
def waiting_word(attempts: int, redriven: int) -> str:
    """What kind of waiting a pending job does: new, retrying, or redriven."""
    if attempts:
        return pgettext("waiting order", "retrying")
    return pgettext("waiting order", "redriven") if redriven else pgettext("waiting order", "new")


@register.filter
def state_tone(state: str) -> str:
    """The data-tone of a state: quarantine bad, delivery info, delivered ok, waiting quiet."""
    return {"dead": "bad", "leased": "info", "done": "ok"}.get(state, "quiet")


@register.filter
def state_icon(state: str) -> str:
    """The icon that stands beside the word of a state."""
    return {"dead": "stop", "leased": "send", "done": "check", "pending": "clock"}.get(state, "info")


@register.filter
def reason_word(reason: str, tries: int | None = None) -> str:
    """Why deliveries stopped; `{{ "exhausted"|reason_word:3 }}` names the tries. Unknown reasons stay as they are."""
    if reason == "exhausted":
        if isinstance(tries, int) and tries > 0:
            return ngettext("gave up after %(n)d try", "gave up after %(n)d tries", tries) % {"n": tries}
        return _("gave up after all tries")
    return {"permanent": _("refused by receiver"), "deadline": _("too late")}.get(reason, reason)


@register.filter
def role_word(group: str) -> str:
    """A role for the eye; in code, records and exports it keeps its own name."""
    words = {"operator": _("operator"), "team_lead": _("team lead"), "auditor": _("auditor")}
    return words.get(group, group)


@register.filter
def finding_word(finding: str) -> str:
    """What an investigation found."""
    words = {
        "looking": _("still looking"),
        "cause_found": _("cause found"),
        "fixed": _("fixed"),
        "not_fixable": _("cannot be fixed"),
    }
    return words.get(finding, finding)


@register.simple_tag
def now_ms() -> int:
    """The instant at which the page is made, in ms."""
    return clock.now_ms()


@register.simple_tag
def clock_of(at_ms: int) -> str:
    """Local hour and minute alone, for the scale of a chart (an SVG text holds no element)."""
    at = local_time(at_ms)
    return f"{at:%H:%M}" if at else NONE


@register.simple_tag
def window_word(name: str) -> str:
    """The name of a window of the past, for the eye."""
    words = {
        "1h": _("1 hour"),
        "3h": _("3 hours"),
        "24h": _("24 hours"),
        "3d": _("3 days"),
        "7d": _("7 days"),
        "all": _("all time"),
    }
    return words.get(name, name)


@register.simple_tag
def trend_words(trend: Sequence[int]) -> str:
    """The numbers behind a small curve, for those who hear it: deaths in each of the last 24 hours, oldest first."""
    return _("Deaths per hour over the last 24 hours: %(numbers)s") % {"numbers": " ".join(map(str, trend))}


@register.simple_tag
def names_of(names: Sequence[str]) -> str:
    """Names of people as a list, with the comma of the language."""
    return pgettext("between names in a list", ", ").join(names)
