"""The record in people's words: a whole sentence for each action, never glued from parts (DESIGN section 12).

An action, target or channel that is not known here is shown as it is stored, for a record must show everything.
"""

import json
from collections.abc import Mapping

from django import template
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop as noop

from queue_app.reads.audit import EventRow
from queue_app.templatetags.addresses import cause_of, page_of
from queue_app.templatetags.words import reason_word

register = template.Library()

SENTENCES = {
    "plan.ask": noop("%(who)s asked for %(what)s"),
    "plan.frozen": noop("The list of %(what)s is fixed"),
    "plan.empty": noop("%(what)s found no orders and is closed"),
    "plan.approve": noop("%(who)s approved %(what)s"),
    "plan.reject": noop("%(who)s rejected %(what)s"),
    "plan.withdraw": noop("%(who)s withdrew %(what)s"),
    "plan.cancel": noop("%(who)s cancelled %(what)s before its list was fixed"),
    "plan.expire": noop("%(what)s ran out before it began"),
    "plan.lapse": noop("The approval of %(what)s ran out before it went on"),
    "batch.begin": noop("%(what)s began"),
    "batch.tick": noop("%(what)s took a step"),
    "batch.halt": noop("%(what)s halted by itself"),
    "batch.pause": noop("%(who)s paused %(what)s"),
    "batch.resume": noop("%(who)s resumed %(what)s"),
    "batch.pace": noop("%(who)s changed the pace of %(what)s"),
    "batch.stop": noop("%(who)s stopped %(what)s for good"),
    "batch.end": noop("%(what)s ended: every order had its turn"),
    "batch.outcomes": noop("The outcomes of %(what)s are complete and sealed"),
    "redrive": noop("%(who)s redrove %(what)s"),
    "investigate": noop("%(who)s recorded an investigation of %(what)s"),
    "payload_look": noop("%(who)s looked at the contents of %(what)s"),
    "save_filter": noop("%(who)s kept %(what)s for all"),
    "delete_filter": noop("%(who)s removed %(what)s for all"),
    "account_set": noop("%(who)s set up or changed %(what)s"),
    "export": noop("%(who)s exported %(what)s"),
    "unblock": noop("%(who)s let later orders pass %(what)s"),
    "pause_queue": noop("%(who)s paused %(what)s"),
    "resume_queue": noop("%(who)s resumed %(what)s"),
    "refused": noop("%(who)s was refused: %(tried)s, %(what)s"),
}
BY_ITSELF = {"batch.pause": noop("%(what)s paused by itself")}
ANEW = {"plan.approve": noop("%(who)s let %(what)s go on"), "batch.begin": noop("%(what)s went on")}

TRIED = {
    "read": noop("read"),
    "read_refused": noop("read refused attempts"),
    "export": noop("export"),
    "investigate": noop("record an investigation"),
    "plan": noop("ask for a redrive"),
    "ask": noop("ask for a redrive"),
    "approve": noop("approve"),
    "reject": noop("reject"),
    "withdraw": noop("withdraw"),
    "cancel": noop("cancel"),
    "pause": noop("pause"),
    "resume": noop("resume"),
    "slow": noop("change the pace"),
    "stop": noop("stop"),
    "continue": noop("let it go on"),
    "confirm_identity": noop("prove identity again"),
    "payload_look": noop("look at the contents"),
    "save_filter": noop("keep a filter for all"),
    "delete_filter": noop("remove a filter for all"),
    "unblock": noop("let later orders pass"),
    "pause_queue": noop("pause a queue"),
}
ACTIONS = {
    "plan.ask": noop("asked for a redrive"),
    "plan.frozen": noop("list fixed"),
    "plan.empty": noop("no orders found"),
    "plan.approve": noop("approved"),
    "plan.reject": noop("rejected"),
    "plan.withdraw": noop("withdrawn"),
    "plan.cancel": noop("cancelled"),
    "plan.expire": noop("ran out"),
    "plan.lapse": noop("approval ran out"),
    "batch.begin": noop("began"),
    "batch.tick": noop("step of the redriver"),
    "batch.halt": noop("halted"),
    "batch.pause": noop("paused"),
    "batch.resume": noop("resumed"),
    "batch.pace": noop("pace changed"),
    "batch.stop": noop("stopped"),
    "batch.end": noop("ended"),
    "batch.outcomes": noop("outcomes sealed"),
    "redrive": noop("order redriven"),
    "investigate": noop("investigation recorded"),
    "payload_look": noop("contents looked at"),
    "save_filter": noop("filter kept for all"),
    "delete_filter": noop("filter removed"),
    "account_set": noop("account changed"),
    "export": noop("exported"),
    "unblock": noop("later orders let pass"),
    "pause_queue": noop("queue paused"),
    "resume_queue": noop("queue resumed"),
    "refused": noop("refused"),
}
TONES = {
    "refused": ("bad", "lock"),
    "plan.reject": ("bad", "x"),
    "batch.halt": ("bad", "alert"),
    "batch.stop": ("bad", "stop"),
    "plan.approve": ("ok", "check"),
    "batch.end": ("ok", "check"),
    "batch.outcomes": ("ok", "lock"),
    "plan.ask": ("info", "again"),
    "redrive": ("info", "again"),
    "batch.begin": ("info", "play"),
    "batch.resume": ("info", "play"),
    "batch.pause": ("warn", "pause"),
    "batch.pace": ("warn", "clock"),
    "plan.expire": ("warn", "clock"),
    "plan.lapse": ("warn", "clock"),
    "payload_look": ("warn", "eye"),
    "investigate": ("quiet", "search"),
    "export": ("quiet", "download"),
    "account_set": ("quiet", "person"),
}
CHANNELS = {
    "console": noop("web console"),
    "cli": noop("command line"),
    "code": noop("program"),
    "redriver": noop("redriver"),
}
PROOFS = {
    "session": noop("signed in"),
    "password": noop("password given again"),
    "shell": noop("access to the machine"),
}


def details(row: EventRow) -> Mapping[str, object]:
    """The stored detail as a mapping; after tampering it may be anything, then {}."""
    try:
        found = json.loads(row.detail)
    except (ValueError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@register.simple_tag
def event_sentence(row: EventRow) -> SafeString:
    """What happened, as one sentence with a link to what it was about."""
    more = details(row)
    template_ = SENTENCES.get(row.action, "")
    if row.actor_id is None and row.action in BY_ITSELF:
        template_ = BY_ITSELF[row.action]
    if row.action in ANEW and isinstance(more.get("round"), int) and more["round"] != 1:
        template_ = ANEW[row.action]
    if not template_:
        template_ = noop("%(who)s: %(action)s, %(what)s")
    tried = str(more.get("tried", ""))
    values = {
        "who": format_html("<strong>{}</strong>", who(row)),
        "what": target_link(row.target),
        "action": format_html("<code>{}</code>", row.action),
        "tried": escape(gettext(TRIED[tried])) if tried in TRIED else format_html("<code>{}</code>", tried),
    }
    return mark_safe(escape(gettext(template_)) % values)  # noqa: S308 - the values are escaped one by one


@register.filter
def who(row: EventRow) -> str:
    """The name of that moment; programs are named too."""
    if row.actor_id is None and row.source == "redriver":
        return _("The redriver")
    if row.actor_id is None and row.source == "cli":
        return _("The command line")
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
        cause = format_html("<code>{}</code>", code) if code else reason_word(reason)
        words, address = _escaped(_("the cause %(cause)s in %(queue)s"), cause=cause, queue=queue), ""
        address = cause_of(queue, reason, code)
    elif kind in ("filter", "filters"):
        words = escape(_("a filter"))
    elif kind == "user":
        words = _escaped(_("account %(user)s"), user=rest)
    elif kind == "export":
        words = escape({"quarantine": _("the quarantine"), "audit": _("the audit record")}.get(rest, rest))
    elif kind in ("identity", "throttled"):
        words = escape(_("own password"))
    return format_html('<a href="{}">{}</a>', address, words) if address else words


def _escaped(sentence: str, **values: str) -> SafeString:
    marked = {
        name: value if isinstance(value, SafeString) else format_html("{}", value) for name, value in values.items()
    }
    marked = {
        name: format_html('<span class="id">{}</span>', value) if name in ("job", "user", "queue") else value
        for name, value in marked.items()
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
def roles_of(row: EventRow) -> list[str]:
    """The roles of that moment."""
    return [role for role in row.roles.split(",") if role]


@register.filter
def refusal_of(row: EventRow) -> str:
    """The sentence that refused, as it was recorded (in English); '' for other events."""
    return str(details(row).get("why", "")) if row.action == "refused" else ""
