"""Signs of life of workers and redrivers."""

from queue_app.models import Process


def beat(name: str, kind: str, queue: str, now_ms: int, detail: str = "") -> None:
    """Say that this process lives; `detail` is a short word for why it waits (`disk_full`, `locked`), or ''."""
    changed = Process.objects.filter(pk=name).update(
        kind=kind, queue=queue, seen_at_ms=now_ms, stopped_at_ms=None, detail=detail
    )
    if not changed:
        Process.objects.get_or_create(
            name=name,
            defaults={
                "kind": kind,
                "queue": queue,
                "started_at_ms": now_ms,
                "seen_at_ms": now_ms,
                "detail": detail,
            },
        )


def leave(name: str, now_ms: int) -> None:
    """Say that this process ended by itself."""
    Process.objects.filter(pk=name).update(seen_at_ms=now_ms, stopped_at_ms=now_ms)


def forget(before_ms: int) -> int:
    """Drop processes not seen since `before_ms`; the number dropped."""
    return Process.objects.filter(seen_at_ms__lt=before_ms).delete()[0]
