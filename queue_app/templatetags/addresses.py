"""Addresses that a figure links to: exactly the rows that it counts."""

from dataclasses import replace
from urllib.parse import urlencode

from django import template
from django.urls import NoReverseMatch, reverse

from queue_app.policy.figures import GroupFigures, Look, Window
from queue_app.policy.filters import Filter

register = template.Library()


def _address(name: str, *arguments: object) -> str:
    try:
        return reverse(name, args=arguments)
    except NoReverseMatch:
        return ""


@register.simple_tag
def rows_of(wanted: Filter) -> str:
    """The quarantine list with this filter."""
    query = urlencode(wanted.query())
    return f"{_address('quarantine_list')}?{query}" if query else _address("quarantine_list")


@register.simple_tag
def rows_of_window(window: Window, *, reason: str | None = None, code: str | None = None) -> str:
    """What died in the window for this reason, or with this code, and is in quarantine now."""
    return rows_of(replace(window.filter, reason=reason, code=code))


@register.simple_tag
def rows_of_queue(queue: str) -> str:
    """What a queue has in quarantine."""
    return rows_of(Filter(queue=queue))


@register.simple_tag
def rows_with_effect() -> str:
    """What may already have been delivered, of the quarantine."""
    return rows_of(Filter(effect=True))


@register.simple_tag
def recent_of(group: GroupFigures, since_ms: int) -> str:
    """What died for this cause since an instant."""
    return rows_of(replace(group.filter, died_from_ms=since_ms))


@register.simple_tag
def since_of(look: Look) -> str:
    """What died since an investigation, for any cause."""
    return rows_of(Filter(died_from_ms=look.as_of_ms))


@register.simple_tag
def orders_of(which: str) -> str:
    """The list of orders outside the quarantine: pending, leased, done, or `unknown` (of the leased)."""
    query = {"state": "leased", "unknown": "yes"} if which == "unknown" else {"state": which}
    return f"{_address('order_list')}?{urlencode(query)}"


@register.simple_tag
def cause_of(queue: str, reason: str, code: str) -> str:
    """The page of one cause; a missing code is written `-`."""
    return _address("group", queue, reason, code or "-")


@register.simple_tag
def cause_page(group: GroupFigures) -> str:
    """The page of one cause."""
    return cause_of(group.queue, group.reason, group.code)


@register.simple_tag
def redrive_of(wanted: Filter) -> str:
    """The form that asks for a redrive of these orders."""
    return f"{_address('redrive_new')}?{urlencode(wanted.query())}"


@register.simple_tag
def page_of(url_name: str, *arguments: object) -> str:
    """A named page with its arguments, '' while it does not exist."""
    return _address(url_name, *arguments)
