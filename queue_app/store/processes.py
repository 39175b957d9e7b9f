"""Signs of life of workers and redrivers."""

from collections.abc import Mapping

from queue_app.models import Process

Columns = Mapping[str, str | int | bool]
NOTHING: Columns = {}


def beat(name: str, kind: str, queue: str, now_ms: int, detail: str = "", more: Columns = NOTHING) -> None:
    """Say that this process lives; `detail` is a short word for why it waits (`disk_full`, `locked`), or ''.

    `more` are other columns of its row; a process that arrives gives its `started_at_ms`.
    """
    told = {"kind": kind, "queue": queue, "seen_at_ms": now_ms, "stopped_at_ms": None, "detail": detail, **more}
    if not Process.objects.filter(pk=name).update(**told):
        Process.objects.get_or_create(name=name, defaults={"started_at_ms": now_ms} | told)


def drain(name: str, started_at_ms: int) -> bool:
    """Tell the worker that began then to take nothing new and end; False when it was told, ended or began anew."""
    found = Process.objects.filter(pk=name, kind="worker", started_at_ms=started_at_ms)
    return bool(found.filter(stopped_at_ms=None, draining=False).update(draining=True))


def told_to_drain(name: str) -> bool:
    """Whether this process was told to take nothing new and end."""
    return Process.objects.filter(pk=name, draining=True).exists()


def find(name: str, *, lock: bool = False) -> Process | None:
    """The process of this name, held until the transaction ends with `lock`."""
    rows = Process.objects.select_for_update() if lock else Process.objects
    return rows.filter(pk=name).first()


def leave(name: str, now_ms: int, more: Columns = NOTHING) -> None:
    """Say that this process ended by itself."""
    Process.objects.filter(pk=name).update(seen_at_ms=now_ms, stopped_at_ms=now_ms, **more)


def forget(before_ms: int) -> int:
    """Drop processes not seen since `before_ms`; the number dropped."""
    return Process.objects.filter(seen_at_ms__lt=before_ms).delete()[0]
