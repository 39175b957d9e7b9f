"""Words for queues and those who work on them: spans of a policy, ends of leases, why a process waits."""

from datetime import UTC

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from queue_app.templatetags.plan_words import pace
from queue_app.templatetags.words import NONE, age, local_time, zone_name

register = template.Library()


@register.filter
def span(ms: int | None) -> str:
    """A span of a policy in words; below a second in milliseconds: `500 ms`, `30 s`, `1 day`."""
    if isinstance(ms, int) and 0 <= ms < 1_000:
        return _("%(ms)d ms") % {"ms": ms}
    return age(ms)


@register.filter
def to_the_second(at_ms: int | None) -> SafeString | str:
    """The local time of day with seconds, for what ends within minutes; date and zone stand in the element's title."""
    at = None if at_ms is None else local_time(at_ms)
    if at is None:
        return NONE
    exact = at.astimezone(UTC).isoformat(timespec="milliseconds")[:23]
    full = f"{at.isoformat(' ', 'seconds')[:19]} {zone_name(at)}"
    return format_html('<time datetime="{}Z" title="{}">{}</time>', exact, full, f"{at:%H:%M:%S}")


@register.filter
def seen_pace(rate_mj: int) -> str:
    """A pace as it was seen, no more exact than anybody can know it: `17.6/s`, `0.25/s`."""
    step = 100 if rate_mj >= 1_000 else 10
    return pace((rate_mj + step // 2) // step * step)


@register.filter
def process_word(state: str) -> str:
    """How a process stands, for the eye."""
    words = {
        "alive": _("alive"),
        "silent": _("silent"),
        "stopped": _("stopped"),
        "unknown": _("never reported"),
    }
    return words.get(state, state)


@register.filter
def process_tone(state: str) -> str:
    """The data-tone of a process: alive ok, lost bad, unknown warn, stopped quiet."""
    return {"alive": "ok", "silent": "bad", "unknown": "warn"}.get(state, "quiet")


@register.filter
def process_icon(state: str) -> str:
    """The icon beside that word."""
    return {"alive": "pulse", "silent": "alert", "unknown": "info"}.get(state, "stop")


@register.filter
def waits_word(detail: str) -> str:
    """Why a process waits, as it said it; a word that is not known is shown as it is."""
    words = {
        "disk_full": _("the disk is full"),
        "read_only": _("the database can only be read"),
        "locked": _("the database is locked"),
        "damaged": _("the database is damaged"),
        "unreachable": _("the database could not be reached"),
        "database_error": _("the database refuses"),
    }
    return words.get(detail, detail)
