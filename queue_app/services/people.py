"""Who is acting, with which roles at this moment, and whether they may (DESIGN section 9).

Rights are read from the database inside the deciding transaction, never from a page or a session.
"""

from dataclasses import dataclass

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser, Permission, User

from queue_app.policy import rights
from queue_app.policy.errors import NotAllowed, gettext_noop
from queue_app.store import chain, database
from queue_app.store.chain import Event

# whole sentences, because no sentence is glued from parts
WHO_MAY = {
    ("operator", "team_lead", "auditor"): gettext_noop("Only operators, team leads and auditors may do this."),
    ("operator", "team_lead"): gettext_noop("Only operators and team leads may do this."),
    ("team_lead", "auditor"): gettext_noop("Only team leads and auditors may do this."),
    ("team_lead",): gettext_noop("Only team leads may do this."),
}


@dataclass(frozen=True, slots=True)
class Actor:
    """A person with the roles read just now. `channel`: console, cli or code; `proof`: session, password, shell."""

    id: int
    name: str
    roles: tuple[str, ...]
    channel: str = "code"
    proof: str = ""

    def may(self, action: str) -> bool:
        """Whether the roles admit the action."""
        return rights.may(self.roles, action)

    def event(self, action: str, target: str, at_ms: int, *, note: str = "", **detail: object) -> Event:
        """An audit event of this person; details are ints, str, bool or None."""
        return Event(
            at_ms=at_ms,
            action=action,
            target=target,
            actor=self.id,
            name=self.name,
            roles=",".join(self.roles),
            note=note,
            source=self.channel,
            proof=self.proof,
            detail=detail,
        )


def actor_of(user: AbstractBaseUser | AnonymousUser, *, channel: str = "code", proof: str = "") -> Actor:
    """The acting person as the database knows them now. Raises NotAllowed for a deactivated or unknown account."""
    row = User.objects.filter(pk=user.pk or 0).values("id", "username", "is_active").first()
    if row is None or not row["is_active"]:
        raise NotAllowed(gettext_noop("This account is deactivated."))
    groups = set(User.groups.through.objects.filter(user_id=row["id"]).values_list("group__name", flat=True))
    roles = tuple(role for role in rights.ROLES if role in groups)
    return Actor(row["id"], row["username"], roles, channel, proof)


def require(actor: Actor, action: str) -> None:
    """Raise NotAllowed, with a sentence that says who may, unless the actor's roles admit the action."""
    if not actor.may(action):
        raise NotAllowed(WHO_MAY[rights.who_may(action)])


def may_see_payload(user: User) -> bool:
    """The permission of its own, granted to the person or a group; a superuser's implicit rights do not count."""
    if not User.objects.filter(pk=user.pk, is_active=True).exists():
        return False
    wanted = Permission.objects.filter(content_type__app_label="queue_app", codename="view_payload")
    return wanted.filter(user=user.pk).exists() or wanted.filter(group__user=user.pk).exists()


@database.retried
def record_refusal(actor: Actor, action: str, target: str, why: str) -> None:
    """Keep a refused attempt in the audit, in a transaction of its own: the attempt itself has changed nothing."""
    with database.write():
        chain.append([actor.event("refused", target, database.now_ms(), tried=action, why=why[:200])])
