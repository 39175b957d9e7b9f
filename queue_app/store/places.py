"""Where long walks stand, and whose turn a chore is: rows of `heads` beside those of the chain and of the orders.

`seq` is the place or the instant of the last turn, `link` the instant until which somebody says to be at it.
"""

from django.db import connection

from queue_app.models import Head

RETENTION = "retention"  # done orders are looked through up to this place in the order of acceptance
TIDYING = "tidying"  # when some process last tidied
RECOUNT = "recount"  # seq: corrections so far; link: orders must not be removed until then


def _stand(name: str) -> None:
    Head.objects.get_or_create(name=name)


def read(name: str) -> int:
    """The place, 0 when nobody was there yet."""
    return Head.objects.filter(pk=name).values_list("seq", flat=True).first() or 0


def remember(name: str, seq: int) -> None:
    """Keep a place."""
    _stand(name)
    Head.objects.filter(pk=name).update(seq=seq)


def take_turn(name: str, now_ms: int, every_ms: int) -> bool:
    """Whether the chore is due now; only one process of all is told so. A clock that went back makes it due, too."""
    _stand(name)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE heads SET seq = %s WHERE name = %s AND (seq <= %s OR seq > %s)",
            [now_ms, name, now_ms - every_ms, now_ms],
        )
        return cursor.rowcount == 1


def replace(name: str, seen: int, seq: int) -> bool:
    """Move a place on if it is still where it was seen; False when somebody else moved it."""
    _stand(name)
    return Head.objects.filter(pk=name, seq=seen).update(seq=seq) == 1


def keep_off(name: str, until_ms: int) -> None:
    """Say that somebody is at it until an instant; 0 ends it."""
    _stand(name)
    Head.objects.filter(pk=name).update(link=until_ms)


def kept_off(name: str, now_ms: int) -> bool:
    """Whether somebody says to be at it now."""
    return Head.objects.filter(pk=name, link__gt=now_ms).exists()
