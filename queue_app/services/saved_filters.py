"""Filters under a name, for oneself or for all. One's own are a personal setting; those for all are everybody's tools,
so they need a right and leave an audit event."""

import re

from django.contrib.auth.models import User

from queue_app.policy.errors import SnackOpsError, gettext_noop
from queue_app.policy.filters import Filter, from_canonical
from queue_app.services import people
from queue_app.services.asking import recorded
from queue_app.services.people import Actor
from queue_app.store import chain, database, saved_filters

MAX_NAME = 60
MAX_FILTERS = 50  # more names than this nobody finds anything in
_REFUSED = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class InvalidName(SnackOpsError, ValueError):
    """A name that a filter cannot have, or one too many."""


class UnknownFilter(SnackOpsError, LookupError):
    """No filter of this number that the person can see."""


@database.retried
def save(user: User, name: str, wanted: Filter, *, for_all: bool = False, channel: str = "console") -> int:
    """Keep a filter under a name, replacing the one of that name; returns its id. InvalidName, FilterError, NotAllowed."""
    name = _check_name(name)
    query = from_canonical(wanted.canonical()).canonical()
    with recorded(user, "save_filter", "filters", channel=channel, proof="session"), database.write():
        actor = people.actor_of(user, channel=channel, proof="session")
        people.require(actor, "save_filter" if for_all else "read")
        owner = None if for_all else actor.id
        if not saved_filters.exists(name, owner) and saved_filters.count(owner) >= MAX_FILTERS:
            raise InvalidName(gettext_noop("At most %(most)s filters can be kept."), most=MAX_FILTERS)
        now = database.now_ms()
        kept = saved_filters.keep(name, owner=owner, made_by=actor.id, query=query, now_ms=now)
        if for_all:
            _record(actor, "save_filter", kept, now, name, query)
        return kept


@database.retried
def delete(user: User, filter_id: int, *, channel: str = "console") -> None:
    """Remove one's own filter, or one for all. UnknownFilter for another's or none, NotAllowed."""
    with recorded(user, "delete_filter", f"filter:{filter_id}", channel=channel, proof="session"), database.write():
        actor = people.actor_of(user, channel=channel, proof="session")
        people.require(actor, "read")
        known = type(filter_id) is int and 0 < filter_id < 2**63  # beyond that no database has a number
        found = saved_filters.find(filter_id) if known else None
        if found is None or found[1] not in (None, actor.id):
            raise UnknownFilter(gettext_noop("This filter does not exist any more."))
        if found[1] is None:
            people.require(actor, "save_filter")
        saved_filters.drop(filter_id)
        if found[1] is None:
            _record(actor, "delete_filter", filter_id, database.now_ms(), found[0], "")


def _record(actor: Actor, action: str, filter_id: int, now: int, name: str, query: str) -> None:
    chain.append([actor.event(action, f"filter:{filter_id}", now, name=name, filter=query)])


def _check_name(name: object) -> str:
    if not isinstance(name, str) or type(name) is not str:
        raise InvalidName(gettext_noop("The name must be text."))
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME:
        raise InvalidName(gettext_noop("A name has 1 to %(most)s characters."), most=MAX_NAME)
    if _REFUSED.search(name):
        raise InvalidName(gettext_noop("The name holds a control character, which cannot be kept."))
    return name
