"""Marks that screens draw: icons, bars, parts of a whole. All are SVG attributes, because the policy forbids styles."""

from functools import cache

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

_CIRCLE = "M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13"
ICONS = {
    "again": "M13.5 8a5.5 5.5 0 1 1-1.7-4M13.7 1.6v3h-3",
    "alert": "M8 2 14.6 13.6H1.4zM8 6.4v3.3M8 11.5v.1",
    "audit": "M3.8 1.7h5.6L12.3 5v9.3H3.8zM6 7.6h4.2M6 10.8h4.2",
    "box": "M1.6 2.2h12.8v3H1.6zM2.6 5.2v8.6h10.8V5.2M6.3 8h3.4",
    "brand": "M2.2 8.7h5v4.8h-5zM8.8 8.7h5v4.8h-5zM5.5 2.5h5v4.8h-5z",
    "causes": "M2.5 3.2h11M2.5 8h7.5M2.5 12.8h4",
    "check": f"{_CIRCLE}M5.1 8.3l2 2 3.8-4.4",
    "clock": f"{_CIRCLE}M8 4.4V8l2.4 1.6",
    "down": "M8 3v10M4 9l4 4 4-4",
    "download": "M8 2v8.2M4.6 7 8 10.4 11.4 7M2.6 13.6h10.8",
    "eye": "M1.2 8C2.8 5 5.2 3.5 8 3.5S13.2 5 14.8 8c-1.6 3-4 4.5-6.8 4.5S2.8 11 1.2 8M8 6a2 2 0 1 1 0 4 2 2 0 0 1 0-4",
    "host": "M2.2 2.5h11.6V7H2.2zM2.2 9h11.6v4.5H2.2zM4.7 4.7v.1M4.7 11.2v.1",
    "info": f"{_CIRCLE}M8 7.3v3.9M8 4.9V5",
    "key": "M5.2 7.3a3.4 3.4 0 1 0 0 6.8 3.4 3.4 0 0 0 0-6.8M7.6 8.3 13.6 2.3M11.2 4.7l2.2 2.2",
    "left": "M13 8H3M7 4 3 8l4 4",
    "lock": "M3.5 7.2h9v6.6h-9zM5.4 7V5a2.6 2.6 0 0 1 5.2 0v2",
    "note": "M2.3 2.8h11.4v8H8.2l-3.4 2.7v-2.7H2.3z",
    "out": "M6.2 2.5H2.8v11h3.4M6.8 8h7M10.8 5l3 3-3 3",
    "pause": "M5.5 3.3v9.4M10.5 3.3v9.4",
    "person": "M8 8a2.9 2.9 0 1 0 0-5.8A2.9 2.9 0 0 0 8 8M2.6 14c.5-2.6 2.6-4 5.4-4s4.9 1.4 5.4 4",
    "play": "M4.8 2.9v10.2L12.8 8z",
    "pulse": "M1.3 8.4h3L6.3 3l3.3 10 2-4.6h3.1",
    "right": "M3 8h10M9 4l4 4-4 4",
    "search": "M7 2.2a4.8 4.8 0 1 1 0 9.6 4.8 4.8 0 0 1 0-9.6M10.6 10.6 14.2 14.2",
    "send": "M1.8 8h8.4M7.2 4.8 10.4 8l-3.2 3.2M13.8 3v10",
    "settings": "M2 4.6h6.2M11.8 4.6H14M2 11.4h2.2M7.8 11.4H14M10 2.8v3.6M6 9.6v3.6",
    "stop": "M5.3 1.5h5.4l3.8 3.8v5.4l-3.8 3.8H5.3l-3.8-3.8V5.3zM8 4.6v4M8 10.9v.1",
    "up": "M8 13V3M4 7l4-4 4 4",
    "x": "M3.8 3.8l8.4 8.4M12.2 3.8l-8.4 8.4",
}


@register.simple_tag
def icon(name: str) -> SafeString:
    """An icon of 1 em in the colour of its text; silent for screen readers, so a word must stand beside it.

    An unknown name is a KeyError: a mark that is missing should be seen when the page is written.
    """
    return _drawn(name)


@cache  # a page of 200 rows shows some of them hundreds of times
def _drawn(name: str) -> SafeString:
    return format_html(
        '<svg class="icon" viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.6"'
        ' stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d="{}"/></svg>',
        ICONS[name],
    )


def width_of(part: int, whole: int) -> str:
    """Width of a part on a bar of 100, two decimals: something is never invisible, and not all is never full."""
    if whole <= 0 or part <= 0:
        return "0"
    if part >= whole:
        return "100"
    return f"{min(max(part * 100 / whole, 1.0), 99.0):.2f}"


@register.simple_tag
def bar(part: int, whole: int, tone: str = "") -> SafeString:
    """A bar for part of whole. It is silent for screen readers: the numbers stand beside it as text."""
    return format_html(
        '<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="bar-track" width="100" height="8"/><rect class="bar-fill"{} width="{}" height="8"/></svg>',
        format_html(' data-tone="{}"', tone) if tone else "",
        width_of(part, whole),
    )


@register.simple_tag
def parts(whole: int, *numbers_and_tones: int | str) -> SafeString:
    """One bar cut into parts: `{% parts 200 170 "ok" 30 "quiet" %}`. What is left of the whole stays empty."""
    pieces, at = [], 0.0
    for number, tone in zip(numbers_and_tones[::2], numbers_and_tones[1::2], strict=True):
        width = min(float(width_of(int(number), whole)), 100 - at)
        pieces.append((tone, f"{at:.2f}", f"{width:.2f}"))
        at += width
    return format_html(
        '<svg class="bar bar-tall" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="bar-track" width="100" height="8"/>{}</svg>',
        format_html_join("", '<rect class="bar-fill" data-tone="{}" x="{}" width="{}" height="8"/>', pieces)
        or mark_safe(""),
    )
