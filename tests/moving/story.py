"""A whole installation in small, and what its pages, figures and files say: `python -m tests.moving.story make|tell`.

Runs on DATABASE_URL. `make` migrates and lets everything happen that leaves a row; `tell` prints what people would see, as
of the same instant on whatever database, so that two houses can be compared byte by byte.
"""

import dataclasses
import json
import sys
from itertools import count
from typing import TYPE_CHECKING

import django

if TYPE_CHECKING:
    from django.contrib.auth.models import User

T = 1_800_000_000_000
PASSWORD = "correct horse battery"
_ticks = count(T, 1_000)


def make() -> None:
    """Everything that leaves a row."""
    from django.contrib.auth.models import User
    from django.core.management import call_command

    from queue_app import clock
    from queue_app.store import database

    call_command("migrate", verbosity=0)
    clock.now_ms = lambda: next(_ticks)
    database.now_ms = clock.now_ms
    _people_and_queues()
    oda, tom = User.objects.get(username="oda"), User.objects.get(username="tom")
    _letters(tom)
    _redrives(oda, tom)
    _looks_and_filters(oda, tom)
    _late_and_unknown()
    _what_no_order_leaves(oda, tom)


def _people_and_queues() -> None:
    from django.contrib.auth.models import Group, User

    from queue_app.models import Queue
    from queue_app.services import accounts
    from queue_app.store import preferences

    for name, role in (("oda", "operator"), ("tom", "team_lead"), ("ada", "auditor"), ("old", "operator")):
        accounts.set_person(name, role=role, password=PASSWORD, see_payloads=name == "tom", active=name != "old")
    oda = User.objects.get(username="oda")
    Group.objects.create(name="night shift").user_set.add(oda)
    preferences.keep(oda.pk, language="ja", time_zone="Asia/Tokyo", single_keys=False)
    Queue.objects.create(name="letters", ordering="ordered", wait_budget_ms=5_000, done_kept_ms=60_000)
    Queue.objects.filter(pk="snacks").update(max_attempts=5)


def _letters(tom: "User") -> None:
    """An ordered queue: three delivered and removed, and three of one key, of which a lead let the later ones pass."""
    from queue_app.models import Unblock
    from queue_app.services import housekeeping, queue

    queue.enqueue("雪".encode().hex(), 3, payload={"to": "雪だるま 'x\\", "n": 1.50, "deep": {"tab": "a\tb\nc"}})
    for job_id in ("l1", "l2", "l3"):
        queue.enqueue(job_id, 1, queue="letters", order_key="k")
    for _ in range(3):
        (lease,) = queue.claim("w", queue="letters", limit=5)
        queue.finish(lease.id, lease.token, "ok")
    for _ in range(100):
        next(_ticks)
    housekeeping.remove_round(wait=lambda _s: None)
    queue.enqueue_many([{"id": f"m{k}", "quantity": 1, "queue": "letters", "order_key": "q"} for k in range(3)])
    (lease,) = queue.claim("w", queue="letters", limit=1)
    queue.finish(lease.id, lease.token, "permanent", code="http_422")
    Unblock.objects.create(job_id=lease.id, token=lease.token, at_ms=next(_ticks), note="INC-3", by=tom)


def _redrives(oda: "User", tom: "User") -> None:
    """One that was carried out, with every outcome, and one that waits for approval."""
    from queue_app.policy.filters import Filter
    from queue_app.services import queue, sealing
    from tests.redrive import story

    story.work()
    story.die(12)
    plan = story.approved(oda, tom)
    ticks_of(plan)
    for outcome, code in [("ok", ""), ("permanent", "http_503"), ("permanent", "http_410")] * 4:
        for lease in queue.claim("w", limit=1):
            queue.finish(lease.id, lease.token, outcome, code=code)
    sealing.seal(plan.pk)
    story.die(6, prefix="later", code="timeout_read")
    story.frozen(story.ask(oda, story.by_filter(Filter(queue="snacks", code="timeout_read"))))


def _looks_and_filters(oda: "User", tom: "User") -> None:
    from queue_app.policy.filters import Filter
    from queue_app.services import looks, saved_filters

    looks.record(oda, "job", "INC-4", "looking", job_id="later1", comment="見た: 原因は不明")
    looks.record(tom, "group", "INC-5", "cause_found", group=("snacks", "permanent", "http_503"))
    looks.record(tom, "filter", "INC-6", "fixed", filter=Filter(queue="snacks"))
    saved_filters.save(oda, "朝の山", Filter(queue="snacks"))
    saved_filters.save(tom, "all of us", Filter(code="http_503"), for_all=True)


def _late_and_unknown() -> None:
    """A late finish, an unknown answer, an order in somebody's hand and one that waits."""
    from queue_app.services import queue
    from queue_app.services.leases import record_unknown

    queue.enqueue("twice", 1)
    (lease,) = queue.claim("w", limit=1)
    for _ in range(31):
        next(_ticks)
    queue.claim("w2", limit=1)
    queue.finish("twice", lease.token, "ok")
    record_unknown("twice", lease.token + 1, "bad_json")
    queue.enqueue("leased", 2)
    queue.claim("w3", limit=1)
    queue.enqueue("waits", 2, deadline_ms=T + 10**9)


def _what_no_order_leaves(oda: "User", tom: "User") -> None:
    from queue_app.models import Gate, Presence, Queue, Reconciliation
    from queue_app.services import life_signs

    Queue.objects.filter(pk="snacks").update(delivery_rate_mj=2_500)
    gate = {"breaker": "open", "failed_in_row": 20, "since_ms": T, "probe_at_ms": T + 1}
    Gate.objects.update_or_create(queue="snacks", defaults=gate)
    Reconciliation.objects.create(started_at_ms=T, ended_at_ms=T + 1, actor=tom, source="cli", compared=3)
    Presence.objects.create(user=oda, queue="snacks", reason="permanent", code="", seen_at_ms=T)
    life_signs.beat("gone", "worker", "snacks")
    life_signs.leave("gone")


def ticks_of(plan: object) -> None:
    """Carry a plan out to its end."""
    from queue_app.services import ticks

    ticks.begin(plan.pk)
    while ticks.tick(plan.pk, unlimited=True).due_ms is not None:
        pass


def tell() -> None:
    """What a person would see, as JSON."""
    from django.contrib.auth.models import User
    from django.db import connection
    from django.test import Client

    from queue_app import clock
    from queue_app.policy.chain import Anchor
    from queue_app.reads.chain import anchor
    from queue_app.reads.figures import figures
    from queue_app.reads.life import life
    from queue_app.store import database

    now = T + 600_000
    clock.now_ms = lambda: now
    database.now_ms = lambda: now
    numbers = dataclasses.asdict(figures(now))
    del numbers["processes"]  # signs of life stay behind
    told: dict[str, object] = {"figures": numbers}
    found = anchor()
    assert isinstance(found, Anchor)
    told["anchor"] = f"{found.seq}:{found.hash}"
    told["lives"] = [dataclasses.asdict(life(job_id, now)) for job_id in ("o1", "o3", "later1", "twice", "m0", "waits")]
    client = Client(headers={"host": "127.0.0.1"})
    told["passwords"] = [User.objects.get(username=name).check_password(PASSWORD) for name in ("oda", "tom", "old")]
    client.force_login(User.objects.get(username="ada"), backend="django.contrib.auth.backends.ModelBackend")
    pages = (
        "/quarantine/",
        "/causes/",
        "/redrives/",
        "/redrives/1/",
        "/redrives/1/orders/",
        "/orders/l1/",
        "/orders/o2/",
    )
    told["pages"] = {page: [client.get(page).status_code, body(client.get(page))] for page in pages}
    told["export"] = [body(client.post("/quarantine/export/", {"format": form})) for form in ("csv", "jsonl")]
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, token, seq, state, payload FROM jobs ORDER BY seq")
        told["jobs"] = cursor.fetchall()
    print(json.dumps(told, default=str, sort_keys=True))


def body(answer: object) -> str:
    """The page without what differs with every request: the tokens of its forms and of its policy."""
    import re

    text = (b"".join(answer.streaming_content) if answer.streaming else answer.content).decode()
    return re.sub(r'(nonce|value|content)="[A-Za-z0-9+/_=-]{16,}"|"X-CSRFToken": ?"[^"]+"', "", text)


if __name__ == "__main__":
    django.setup()
    {"make": make, "tell": tell}[sys.argv[1]]()
