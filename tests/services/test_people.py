"""Who is acting, what they may, and the sentence that says who may: every right, every way that a permission comes."""

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.contrib.contenttypes.models import ContentType

from queue_app.policy import rights
from queue_app.policy.errors import NotAllowed
from queue_app.services import people
from queue_app.services.people import Actor
from queue_app.store.chain import Event
from tests.services.told import DEACTIVATED, LEADS, WORKERS, World, told

ALL = "Only operators, team leads and auditors may do this."
OVERSEERS = "Only team leads and auditors may do this."
SENTENCES = {
    ("operator", "team_lead", "auditor"): ALL,
    ("operator", "team_lead"): WORKERS,
    ("team_lead", "auditor"): OVERSEERS,
    ("team_lead",): LEADS,
}


@pytest.mark.parametrize("action", rights.ACTIONS)
def test_who_may_passes_and_everybody_else_hears_who_may(action: str) -> None:
    for role in (*rights.ROLES, "nobody"):
        actor = Actor(1, "x", () if role == "nobody" else (role,))
        assert actor.may(action) is (role in rights.ACTIONS[action])
        if actor.may(action):
            people.require(actor, action)
            continue
        with pytest.raises(NotAllowed) as refused:
            people.require(actor, action)
        assert (refused.value.template, refused.value.values) == (SENTENCES[rights.who_may(action)], {})


def test_an_event_tells_the_whole_person() -> None:
    actor = Actor(3, "oda", ("operator", "auditor"), "cli", "shell")
    assert actor.event("pause", "plan:1", 77, note="INC-1", n=2) == Event(
        77, "pause", "plan:1", 3, "oda", "operator,auditor", "INC-1", "cli", "shell", {"n": 2}
    )
    assert Actor(3, "oda", ()).event("pause", "plan:1", 77) == Event(77, "pause", "plan:1", 3, "oda", "", "")


@pytest.mark.django_db
def test_the_actor_is_the_account_as_it_stands_now(operator: User, auditor: User) -> None:
    assert people.actor_of(operator) == Actor(operator.pk, "oda", ("operator",), "code", "")
    auditor.groups.add(*Group.objects.filter(name__in=["team_lead", "operator"]), Group.objects.create(name="others"))
    whole = Actor(auditor.pk, "ada", ("operator", "team_lead", "auditor"), "console", "password")
    assert people.actor_of(auditor, channel="console", proof="password") == whole
    User.objects.filter(pk=operator.pk).update(username="oda.new")
    operator.groups.clear()
    assert people.actor_of(operator) == Actor(operator.pk, "oda.new", ())


@pytest.mark.django_db
@pytest.mark.parametrize("who", ["gone", "unknown", "anonymous", "unsaved"])
def test_nobody_acts_without_an_account_that_is_active(who: str) -> None:
    User.objects.update_or_create(pk=1, defaults={"username": "first", "is_active": True})
    gone = User.objects.create(pk=2_000_000, username="gone", is_active=False)
    user = {
        "gone": gone,
        "unknown": User(pk=gone.pk + 1),
        "anonymous": AnonymousUser(),
        "unsaved": User(username="oda"),
    }[who]
    with pytest.raises(NotAllowed) as refused:
        people.actor_of(user)
    assert (refused.value.template, refused.value.values) == (DEACTIVATED, {})


def _permission(app: str, codename: str) -> Permission:
    kind, _made = ContentType.objects.get_or_create(app_label=app, model="job")
    return Permission.objects.get_or_create(content_type=kind, codename=codename, defaults={"name": codename})[0]


@pytest.mark.django_db
def test_contents_are_seen_by_who_was_given_the_permission_and_is_active(operator: User, team_lead: User) -> None:
    wanted = _permission("queue_app", "view_payload")
    near = [_permission("queue_app", "view_job"), _permission("auth", "view_payload")]
    operator.user_permissions.add(*near)
    Group.objects.get(name="operator").permissions.add(*near)
    root = User.objects.create_superuser("root", password=None)
    people_asked = (operator, team_lead, root, User(pk=root.pk + 1_000))
    assert [people.may_see_payload(user) for user in people_asked] == [False] * 4
    operator.user_permissions.add(wanted)
    assert [people.may_see_payload(user) for user in people_asked] == [True, False, False, False]
    operator.user_permissions.remove(wanted)
    Group.objects.get(name="team_lead").permissions.add(wanted)
    assert [people.may_see_payload(user) for user in people_asked] == [False, True, False, False]
    User.objects.filter(pk=team_lead.pk).update(is_active=False)
    assert not people.may_see_payload(team_lead)


@pytest.mark.django_db
@pytest.mark.parametrize(("length", "kept"), [(0, 0), (199, 199), (200, 200), (201, 200)])
def test_a_refused_attempt_is_kept_with_its_reason_up_to_a_bound(world: World, length: int, kept: int) -> None:
    actor = people.actor_of(world.oda, channel="console", proof="session")
    people.record_refusal(actor, "approve", "plan:7", "x" * length)
    assert told(0) == [world.event(world.oda, "refused", "plan:7", tried="approve", why="x" * kept)]
