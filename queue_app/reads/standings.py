"""Where every order stands, in one pass over the rows: for the manifest of a backup and for what was restored from it.

It asks in bites. The instant of the whole is the caller's matter: a copy of its own, or a snapshot.
"""

import hashlib

from django.db import connection

from queue_app.policy.chain import GENESIS, Anchor
from queue_app.policy.manifests import Standing
from queue_app.reads import chain

BITE = 5_000
_JOBS = "SELECT id, state, token, quantity FROM jobs WHERE id > %s ORDER BY id LIMIT %s"
_TOMBSTONES = "SELECT job_id, 'pruned', 0, quantity FROM tombstones WHERE job_id > %s ORDER BY job_id LIMIT %s"


def standing() -> Standing:
    """Counts, tokens, digest, anchor and applied migrations of the default database."""
    digest = hashlib.sha256()
    orders: dict[str, int] = {}
    token_sum = token_max = 0
    for sql in (_JOBS, _TOMBSTONES):
        after = ""
        while rows := _rows(sql, [after, BITE]):
            for job_id, state, token, quantity in rows:
                digest.update(f"{job_id} {state} {token} {quantity}\n".encode("ascii", "backslashreplace"))
                orders[state] = orders.get(state, 0) + 1
                token_sum += int(token)
                token_max = max(token_max, int(token))
            after = rows[-1][0]
    return Standing(
        tombstones=orders.pop("pruned", 0),
        orders=orders,
        redrives=int(_rows("SELECT count(*) FROM redrives", [])[0][0]),
        token_sum=token_sum,
        token_max=token_max,
        digest=digest.hexdigest(),
        anchor=chain.anchor() or Anchor(0, GENESIS),
        migrations=tuple(f"{app}.{name}" for app, name in _rows(_APPLIED, [])),
    )


_APPLIED = "SELECT app, name FROM django_migrations ORDER BY app, name"


def _rows(sql: str, values: list[str | int]) -> list[tuple[str, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return [tuple(row) for row in cursor.fetchall()]
