"""Where an order stands in the list that a person came from: the one before it and the one after it, by the address."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest

from queue_app.policy.cursors import CursorError, decode
from queue_app.policy.filters import Filter, FilterError, parse
from queue_app.policy.plans import InvalidPlan
from queue_app.reads import plans
from queue_app.reads.plans import ItemLine
from queue_app.reads.quarantine import neighbours
from queue_app.store import queues
from queue_app.views import filters
from queue_app.views.redrive_items import PARTS, part_of, position_of


def place_of(request: HttpRequest) -> dict[str, Any]:
    """`previous` and `next`, each (id, query of its address) or None, and `query`, the address's own. Nothing but the
    query when the address names no list, or one that cannot be meant."""
    return {"query": request.GET.urlencode(), **(_in_redrive(request) or _in_quarantine(request))}


def item_query(plan_id: int, row: ItemLine, which: str, why: str | None) -> str:
    """The query with which an order's page knows its place in a redrive's list, or in a part of it."""
    place = {"redrive": plan_id, "place": row.pos, "which": which, "why": why}
    return urlencode({name: value for name, value in place.items() if value})


def _in_quarantine(request: HttpRequest) -> dict[str, Any]:
    if "cursor" not in request.GET:
        return {}
    named = {name: request.GET.getlist(name) for name in filters.LABELS if name in request.GET}
    try:
        wanted: Filter = parse(named, queues=list(queues.policies()), zone=filters.zone_of())
        beside = neighbours(wanted, decode(request.GET["cursor"], wanted.digest()))
    except (FilterError, CursorError):
        return {}
    return {
        name: place and (place[0], urlencode([*wanted.query(), ("cursor", place[1])]))
        for name, place in (("previous", beside.previous), ("next", beside.next))
    }


def _in_redrive(request: HttpRequest) -> dict[str, Any]:
    """Two bounded searches, as the page of that list makes them."""
    if "redrive" not in request.GET:
        return {}
    try:
        plan_id, place = (position_of(request.GET.get(name, "")) for name in ("redrive", "place"))
        which, why = part_of(request.GET.get("which", ""), request.GET.get("why", ""))
    except InvalidPlan:
        return {}
    before = plans.plan_items(plan_id, before_pos=place, limit=1, why=why, **PARTS[which])
    after = plans.plan_items(plan_id, after_pos=place, limit=1, why=why, **PARTS[which])
    return {
        name: (rows[0].job_id, item_query(plan_id, rows[0], which, why)) if rows else None
        for name, rows in (("previous", before), ("next", after))
    }
