"""Addresses that a figure links to: exactly the rows that it counts."""

from urllib.parse import urlencode

from django import template
from django.urls import NoReverseMatch, reverse

from queue_app.policy.figures import GroupFigures
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
