"""How the orders of a queue ended so far, from the counters: delivered, in quarantine and why, or not yet."""

from dataclasses import dataclass

from django.db.models import Sum

from queue_app.models import Count, Queue


@dataclass(frozen=True, slots=True)
class Ends:
    """Exact counts at the moment of reading; `dead` by reason, the most frequent first."""

    queue: str
    accepting: bool
    done: int
    unfinished: int
    dead: tuple[tuple[str, int], ...]

    @property
    def in_quarantine(self) -> int:
        """Orders in quarantine for whatever reason."""
        return sum(n for _reason, n in self.dead)


def of_queue(queue: str) -> Ends:
    """How one queue stands; two queries, whatever it holds."""
    found: dict[tuple[str, str], int] = {}
    rows = Count.objects.filter(queue=queue).values_list("state", "reason").annotate(total=Sum("n"))
    for state, reason, total in rows:
        found[state, reason] = int(total)
    dead = [(reason, n) for (state, reason), n in found.items() if state == "dead" and n]
    return Ends(
        queue=queue,
        accepting=Queue.objects.filter(pk=queue, accepting=True).exists(),
        done=sum(n for (state, _reason), n in found.items() if state == "done"),
        unfinished=sum(n for (state, _reason), n in found.items() if state in ("pending", "leased")),
        dead=tuple(sorted(dead, key=lambda share: (-share[1], share[0]))),
    )
