"""Backups and restored copies as lines for a terminal."""

from collections.abc import Iterator
from urllib.parse import quote

from queue_app.management import reconcile_words
from queue_app.policy.cells import utc
from queue_app.policy.manifests import Manifest
from queue_app.services.backups import Made, Restored
from queue_app.services.reconciling import Result

_WAITING = ("pending_with_effect", "leased_with_effect")


def of_made(made: Made) -> Iterator[str]:
    """What was made, what it holds, and what it cost."""
    manifest = made.manifest
    yield f"Backup: {made.folder} ({manifest.bytes:,} bytes, {manifest.server})"
    yield f"as of {utc(manifest.made_at_ms)}: {_orders(manifest)}"
    if made.paused_ms:
        yield f"Commits waited {made.paused_ms:,} ms for it, because writers overtook its smaller steps."
    if not made.recorded:
        yield "The database took no write, so this backup is not in the record."
    yield f"anchor: {manifest.standing.anchor}"


def of_restored(done: Restored) -> Iterator[str]:
    """What was restored, what must be looked at, what the receiver knows, and what to switch."""
    yield f"Restored: {done.place}"
    yield f"as of {utc(done.manifest.made_at_ms)}: {_orders(done.manifest)}"
    if not done.problems:
        yield "Whole: checksum, states, tokens, counters and the record are as they were."
    for problem in done.problems:
        yield f"PROBLEM: {problem}"
    for remark in done.remarks:
        yield f"Know: {remark}"
    if done.result is not None:
        yield from _of_receiver(done.result)
    yield from _next(done)


def _orders(manifest: Manifest) -> str:
    orders = manifest.standing.orders
    named = (("done", "delivered"), ("dead", "in quarantine"), ("pending", "waiting"), ("leased", "being delivered"))
    return ", ".join(f"{orders.get(state, 0):,} {word}" for state, word in named)


def _of_receiver(result: Result) -> Iterator[str]:
    unknown = result.kinds.get("unknown_here", 0)
    again = sum(result.kinds.get(kind, 0) for kind in _WAITING) + result.passing.get("in_flight", 0)
    dead = result.kinds.get("dead_with_effect", 0)
    if unknown:
        yield (
            f"The receiver knows {unknown:,} orders that this backup does not: they were accepted after it. Whoever sent "
            "them must send them again, with the same ids; the receiver then says that it knows them."
        )
    if again:
        yield (
            f"The receiver has done {again:,} orders that wait for delivery in this backup. They will be delivered again: "
            "harmless at a receiver that recognises ids, as the contract asks; at any other, look at them first."
        )
    if dead:
        yield (
            f"The receiver has done {dead:,} orders that are in quarantine in this backup: redrives after it are missing, "
            "or their answers were lost. Look before you redrive them."
        )
    yield from reconcile_words.of_result(result)


def _next(done: Restored) -> Iterator[str]:
    yield "What to do next:"
    yield "  1. Stop every worker, redriver and page of the old installation, and keep its database as it is."
    if done.manifest.database == "sqlite":
        yield f"  2. Set DATABASE_URL=sqlite:///{quote(done.place)}"
    else:
        yield f"  2. Run snackops/ops/application_role.sql in the database {done.place} as its owner: backups hold no rights."
        yield "     Set DATABASE_URL to it, on the same server."
    yield "  3. Start again, look at /readyz, and run `manage.py reconcile`."
