"""What a person's call gives back and what the record tells of it, as whole values that a table can hold."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User

from queue_app.models import AuditEvent, Plan
from queue_app.policy.errors import SnackOpsError
from queue_app.store.chain import Event
from tests.conftest import Clock

DEACTIVATED = "This account is deactivated."
LEADS = "Only team leads may do this."
WORKERS = "Only operators and team leads may do this."
WAYS: list[dict[str, str]] = [{}, {"channel": "cli", "proof": "shell"}]  # how a person came; nothing said: the console


@dataclass
class World:
    """Who is there, what stands, and how the person came: `how` is given to the call, `channel` and `proof` are told."""

    oda: User
    tom: User
    ada: User
    clock: Clock
    how: dict[str, str] = field(default_factory=dict)
    channel: str = "console"
    proof: str = "session"
    plan: Plan = field(default_factory=Plan)
    kept: int = 0
    more: dict[str, Any] = field(default_factory=dict)

    def gone(self) -> User:
        """Tom, a lead whose account is deactivated while he has the page open."""
        User.objects.filter(pk=self.tom.pk).update(is_active=False)
        return self.tom

    def event(self, user: User, action: str, target: str, *, note: str = "", **detail: object) -> Event:
        """What the record tells of a person's move of now."""
        role = {"oda": "operator", "tom": "team_lead", "ada": "auditor"}[user.username]
        active = User.objects.get(pk=user.pk).is_active
        return Event(
            self.clock.now, action, target, user.pk, user.username, role if active else "", note, self.channel,
            self.proof, dict(detail),
        )  # fmt: skip

    def refused(self, user: User, tried: str, target: str, why: str) -> list[Event]:
        """What it tells of a refused one."""
        return [self.event(user, "refused", target, tried=tried, why=why)]

    def program(self, action: str, **detail: object) -> Event:
        """What it tells of a redriver's step in the redrive of now."""
        return Event(self.clock.now, action, f"plan:{self.plan.pk}", None, "redriver", "", "", "redriver", "", detail)


def by_way(world: World, way: dict[str, str], *, proof: bool = True) -> World:
    """The same world, reached by this way; some moves have one proof only."""
    world.how = {name: value for name, value in way.items() if proof or name == "channel"}
    world.channel = way.get("channel", "console")
    world.proof = way.get("proof", "session") if proof else "session"
    return world


@dataclass(frozen=True)
class Refused:
    """A refusal: its class, its whole sentence, and the field that it is about (None: it names none)."""

    kind: type[SnackOpsError]
    sentence: str
    field: str | None = None


@dataclass(frozen=True)
class Case:
    """One call in one situation: what stands before it, the call, what it gives (or Refused), and the new events."""

    call: Callable[[World], object]
    gives: Callable[[World], object]
    events: Callable[[World], list[Event]] = lambda _world: []
    before: Callable[[World], object] = lambda _world: None


def check(case: Case, world: World) -> None:
    """Make the call and compare all that it gives and all that the record tells of it."""
    case.before(world)
    seq = max(AuditEvent.objects.values_list("seq", flat=True), default=0)
    try:
        given: object = case.call(world)
    except SnackOpsError as refused:
        given = Refused(type(refused), str(refused), getattr(refused, "field", None))
    wanted, new, events = case.gives(world), told(seq), case.events(world)
    assert given == wanted, f"\n{given}\n{wanted}"
    assert new == events, f"\n{new}\n{events}"


def told(seq: int) -> list[Event]:
    """The events after this one."""
    return [
        Event(
            row.at_ms, row.action, row.target, row.actor_id, row.name, row.roles, row.note, row.source, row.proof,
            json.loads(row.detail),
        )
        for row in AuditEvent.objects.filter(seq__gt=seq).order_by("seq")
    ]  # fmt: skip
