"""Moves of people and of many at once for a process whose children die at a chosen point: `tests.engine.mortal`."""

from collections.abc import Callable
from typing import Any


def _user(pk: int) -> Any:
    from django.contrib.auth.models import User

    return User.objects.get(pk=pk)


def _given(move: Callable[..., Any], **fixed: Any) -> Callable[..., bool]:
    """The move of a person; whoever asks learns no more than that it was told."""
    return lambda user, **more: move(_user(user), **more, **fixed) is not None


def moves() -> dict[str, Callable[..., Any]]:
    """By name."""
    from queue_app.services import leases, queue

    def results(some: list[list[Any]]) -> list[queue.Result]:
        return [queue.Result(*one) for one in some]

    return {
        "claim": lambda: [[lease.id, lease.token] for lease in queue.claim("w")],
        "finish_many": lambda some: queue.finish_many(results(some)),
        "renew_many": lambda some, **more: leases.renew_many([(job, token) for job, token in some], **more),
        "release_many": lambda some: leases.release_many([(job, token) for job, token in some]),
        **_of_redrives(),
        **_of_queues(),
        **_of_looks(),
        **_of_accounts(),
    }


def _of_redrives() -> dict[str, Callable[..., Any]]:
    from queue_app.services import approvals, batches, plans

    def reject(user: int, proof: list[Any], **more: Any) -> bool:
        return approvals.reject(_user(user), proof=approvals.Proof(*proof), round=1, note="NO-1", **more).first

    return {
        "pause": _given(batches.pause),
        "resume": _given(batches.resume),
        "stop": _given(batches.stop),
        "pace": _given(batches.set_pace),
        "withdraw": _given(plans.withdraw),
        "cancel": _given(plans.cancel),
        "reject": reject,
    }


def _of_queues() -> dict[str, Callable[..., Any]]:
    from queue_app.services import queues, unblocks, workers

    return {
        "close_queue": _given(queues.close),
        "reopen_queue": _given(queues.reopen),
        "pause_queue": _given(queues.pause),
        "resume_queue": _given(queues.resume),
        "cancel_queue": _given(queues.cancel),
        "limit_queue": _given(queues.set_limits),
        "unblock": _given(unblocks.unblock, note="INC-1"),
        "drain_worker": _given(workers.drain),
    }


def _of_looks() -> dict[str, Callable[..., Any]]:
    from queue_app.policy.filters import Filter
    from queue_app.services import exports, looks, payloads, reconciling, saved_filters

    def compared(user: int) -> int:
        nothing: dict[str, int] = {}
        result = reconciling.Result(1, 2, 9, 1, {"no_effect": 1}, nothing, nothing, nothing, (("no_effect", "o1"),))
        return reconciling.record(result, _user(user))

    def export(user: int) -> str:
        nothing = exports.Content(0, 1, iter(()))
        return exports.export(_user(user), "quarantine", (), lambda _actor: nothing, filter="", form="csv").file_name

    def look(user: int, group: list[str] | None = None, queue: str = "", **more: Any) -> int:
        wanted: dict[str, Any] = {"group": tuple(group)} if group else {"filter": Filter(queue=queue)} if queue else {}
        return looks.record(_user(user), note="INC-1", finding="looking", **wanted, **more).id

    return {
        "investigate": look,
        "payload": _given(payloads.look),
        "save": lambda user, **more: saved_filters.save(_user(user), wanted=Filter(queue="snacks"), **more),
        "delete": lambda user, filter_id: saved_filters.delete(_user(user), filter_id),
        "reconcile": compared,
        "export": export,
    }


def _of_accounts() -> dict[str, Callable[..., Any]]:
    from django.test import override_settings

    from queue_app.services import accounts, counting, people, sessions

    def new_password(user: int, password: str) -> None:
        person = _user(user)
        with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):  # a quick one
            sessions.change_password(person, people.actor_of(person), password)

    return {
        "account": accounts.set_person,
        "new_password": new_password,
        "rebuild": lambda: counting.rebuild(wait=lambda _seconds: None).mended,
    }
