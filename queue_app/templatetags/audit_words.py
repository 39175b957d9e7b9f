"""The record in people's words: a whole sentence for each action, never glued from parts (DESIGN section 12).

An action, target or channel that is not known here is shown as it is stored, for a record must show everything.
"""

import json
from collections.abc import Mapping
from typing import Protocol

from django import template
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext
from django.utils.translation import gettext as _

from queue_app.policy.audit_actions import ACTIONS, ANEW, BY_ITSELF, CHANNELS, PROOFS, SENTENCES, TONES, TRIED, UNKNOWN
from queue_app.templatetags.addresses import cause_of, page_of
from queue_app.templatetags.frame import section_of
from queue_app.templatetags.words import reason_word

register = template.Library()


class Event(Protocol):
    """A row of the record, as far as words need it."""

    @property
    def actor_id(self) -> int | None: ...
    @property
    def name(self) -> str: ...
    @property
    def roles(self) -> str: ...
    @property
    def action(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def detail(self) -> str: ...


def details(row: Event) -> Mapping[str, object]:
    """The stored detail as a mapping; after tampering it may be anything, then {}."""
    try:
        found = json.loads(row.detail)
    except (ValueError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _again(more: Mapping[str, object]) -> bool:
    """Whether a beginning or an approval lets something go on that had begun before."""
    return more.get("first") is False or more.get("round", 1) != 1


@register.simple_tag
def event_sentence(row: Event) -> SafeString:
    """What happened, as one sentence with a link to what it was about."""
    more = details(row)
    template_ = SENTENCES.get(row.action, "")
    if row.actor_id is None and row.action in BY_ITSELF:
        template_ = BY_ITSELF[row.action]
    if row.action in ANEW and _again(more):
        template_ = ANEW[row.action]
    if not template_:
        template_ = UNKNOWN
    tried = str(more.get("tried", ""))
    values = {
        "who": format_html("<strong>{}</strong>", who(row)),
        "what": target_link(row.target),
        "action": format_html("<code>{}</code>", row.action),
        "tried": escape(gettext(TRIED[tried])) if tried in TRIED else format_html("<code>{}</code>", tried),
    }
    return mark_safe(escape(gettext(template_)) % values)  # noqa: S308 - the values are escaped one by one


@register.filter
def who(row: Event) -> str:
    """The name of that moment; programs are named too."""
    if row.actor_id is None and row.source == "redriver":
        return _("The redriver")
    if row.actor_id is None and row.source == "cli":
        return _("The command line")
    if row.actor_id is None and row.source == "console":
        return _("Somebody")
    return row.name or _("A program")


@register.simple_tag
def target_link(target: str) -> SafeString:
    """What an event was about, in words, linked to its page where it has one."""
    kind, _colon, rest = target.partition(":")
    words, address = format_html('<span class="id">{}</span>', target), ""
    if kind == "plan" and rest.isascii() and rest.isdigit():
        words, address = escape(_("Redrive R-%(plan)s") % {"plan": rest}), page_of("redrive", rest)
    elif kind == "job":
        words = _escaped(_("order %(job)s"), job=rest)
        address = page_of("job", rest)
    elif kind == "group" and rest.count("/") == 2:
        queue, reason, code = rest.split("/")
        cause = format_html("<code>{}</code>", code) if code else format_html("{}", reason_word(reason))
        words, address = (
            _escaped(_("the cause %(cause)s in %(queue)s"), cause=cause, queue=queue),
            cause_of(queue, reason, code),
        )
    elif kind in ("filter", "filters"):
        words = escape(_("a filter"))
    elif target == "counters":
        words = escape(_("the counters"))
    elif kind == "user":
        words = _escaped(_("account %(user)s"), user=rest)
    elif kind == "queue":
        words = _escaped(_("queue %(queue)s"), queue=rest)
    elif kind == "worker":
        words, address = _escaped(_("worker %(worker)s"), worker=rest), page_of("process_list")
    elif kind == "export":
        words = escape(
            {
                "quarantine": _("the quarantine"),
                "audit": _("the audit record"),
                "redrive": _("the orders of a redrive"),
            }.get(rest, rest)
        )
    elif kind == "page":
        section = section_of(rest)
        label = format_html("{}", section.label) if section else rest
        words, address = _escaped(_("the page %(page)s"), page=label), page_of(section.url_name) if section else ""
    elif target == "receiver":
        words, address = escape(_("the receiver's list")), page_of("reconciliations")
    elif target == "database":
        words = escape(_("the database"))
    elif target == "identity:unknown":
        words = escape(_("a name that nobody has"))
    elif kind in ("identity", "throttled"):
        words = escape(_("own password"))
    return format_html('<a href="{}">{}</a>', address, words) if address else words


def _escaped(sentence: str, **values: str) -> SafeString:
    """A translated sentence with ids in it, all escaped; what is marked up already stays as it is."""
    marked = {
        name: value if isinstance(value, SafeString) else format_html('<span class="id">{}</span>', value)
        for name, value in values.items()
    }
    return mark_safe(escape(sentence) % marked)  # noqa: S308 - the values are escaped one by one


@register.filter
def action_word(action: str) -> str:
    """A short word for an action; unknown ones as they are."""
    return gettext(ACTIONS[action]) if action in ACTIONS else action


@register.filter
def channel_word(source: str) -> str:
    """Through which door it came."""
    return gettext(CHANNELS[source]) if source in CHANNELS else source


@register.filter
def proof_word(proof: str) -> str:
    """How identity was proved."""
    return gettext(PROOFS[proof]) if proof in PROOFS else proof


@register.filter
def event_tone(action: str) -> str:
    """The data-tone of an event."""
    return TONES.get(action, ("quiet", "note"))[0]


@register.filter
def event_icon(action: str) -> str:
    """The icon of an event."""
    return TONES.get(action, ("quiet", "note"))[1]


@register.filter
def roles_of(row: Event) -> list[str]:
    """The roles of that moment."""
    return [role for role in row.roles.split(",") if role]


@register.filter
def refusal_of(row: Event) -> SafeString | str:
    """The sentence that refused; it is recorded in English, and said in the page's language where a catalog has it."""
    why = str(details(row).get("why", "")) if row.action == "refused" else ""
    if not why:  # the catalog's own head is filed under ''
        return ""
    said = gettext(why)
    return said if said != why else format_html('<span lang="en">{}</span>', why)
