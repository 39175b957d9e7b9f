"""The frame of every page: navigation, languages, zone."""

from typing import Any, NamedTuple

from django import template
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import get_language, pgettext_lazy

from queue_app import clock
from queue_app.templatetags.words import local_time, zone_name

register = template.Library()


class Section(NamedTuple):
    """One entry of the navigation. `stem` begins the URL names of all pages that belong to it."""

    url_name: str
    stem: str
    label: str | Promise
    icon: str
    key: str


SECTIONS = (
    Section("overview", "overview", pgettext_lazy("navigation", "Overview"), "pulse", "o"),
    Section("quarantine_list", "quarantine", pgettext_lazy("navigation", "Quarantine"), "box", "q"),
    Section("group_list", "group", pgettext_lazy("navigation", "Causes"), "causes", "g"),
    Section("investigation_list", "investigation", pgettext_lazy("navigation", "Investigations"), "search", "i"),
    Section("order_list", "order", pgettext_lazy("navigation", "Orders"), "send", "d"),
    Section("redrive_list", "redrive", pgettext_lazy("navigation", "Redrives"), "again", "r"),
    Section("process_list", "process", pgettext_lazy("navigation", "Workers"), "host", "w"),
    Section("queue_list", "queue", pgettext_lazy("navigation", "Queues"), "settings", "u"),
    Section("audit_list", "audit", pgettext_lazy("navigation", "Audit"), "audit", "a"),
)
ELSEWHERE = {"job": "order", "reconciliations": "overview"}  # pages whose names begin with no entry's stem
OWN_NAMES = {"en": "English", "ja": "日本語", "zh-hans": "简体中文"}
HTML_LANGS = {"zh-hans": "zh-Hans"}


def section_of(page: str) -> Section | None:
    """The entry of the navigation that a page of this URL name belongs to."""
    stem = ELSEWHERE.get(page.partition("_")[0], page)
    return next((one for one in SECTIONS if stem == one.stem or stem.startswith(f"{one.stem}_")), None)


def address(url_name: str) -> str:
    """Where a named page lives, or '' while it does not exist."""
    try:
        return reverse(url_name)
    except NoReverseMatch:
        return ""


@register.simple_tag(takes_context=True)
def navigation(context: dict[str, Any]) -> list[dict[str, Any]]:
    """The sections that exist, each with `url`, `label`, `icon`, `key`, and `current`: page, true or ''.

    A page may name its section by the context variable `section` (a stem, such as `quarantine`).
    """
    match = getattr(context.get("request"), "resolver_match", None)
    here = (match.url_name or "") if match else ""
    stem = context.get("section") or here
    entries = []
    for section in SECTIONS:
        url = address(section.url_name)
        inside = stem == section.stem or stem.startswith(f"{section.stem}_")
        current = "page" if here == section.url_name else "true" if inside else ""
        if url:
            entries.append({**section._asdict(), "url": url, "current": current})
    return entries


@register.simple_tag
def url_or_nothing(url_name: str) -> str:
    """`{% url_or_nothing "overview" as home %}`: '' while no page has that name."""
    return address(url_name)


@register.simple_tag
def html_lang() -> str:
    """The page's language as HTML and CSS write it: en, ja, zh-Hans."""
    language = get_language() or "en"
    return HTML_LANGS.get(language, language)


@register.simple_tag
def languages() -> list[dict[str, Any]]:
    """The languages of the product, each under its own name."""
    now = get_language()
    return [
        {"code": code, "lang": HTML_LANGS.get(code, code), "name": name, "current": code == now}
        for code, name in OWN_NAMES.items()
    ]


@register.simple_tag
def zone() -> dict[str, str]:
    """The zone in which this page shows times: its `name` (Asia/Tokyo) and its `short` name now (JST)."""
    now = local_time(clock.now_ms())
    return {"name": timezone.get_current_timezone_name(), "short": zone_name(now) if now else ""}


@register.filter
def safe_next(request: Any) -> str:
    """The path to come back to after a personal choice; only a page that was read (GET) can be read again."""
    return request.get_full_path() if request is not None and request.method == "GET" else ""
