"""Is a restored copy whole? Version, guards, counters against rows, the record and its anchor, orders in delivery.

Everything is asked of the default database, which the caller has set to the copy.
"""

import time

from django.db import connection
from django.db.migrations.loader import MigrationLoader

from queue_app.models import Job
from queue_app.policy.chain import Anchor
from queue_app.services import counting, readiness, verification


def look(expect: Anchor) -> tuple[list[str], list[str]]:
    """(problems, remarks), one sentence each. `expect`: the anchor that must be in the record."""
    problems: list[str] = []
    remarks: list[str] = []
    strange = _unknown_migrations()
    if strange:
        problems.append(f"The backup was made by a newer version: this one does not know {', '.join(strange[:3])}.")
    lacks = readiness.lacks()
    if "migrations" in lacks:
        remarks.append(
            "The backup was made by an older version: run `manage.py migrate` on the copy before you use it."
        )
    elif lacks:
        problems.append(f"The copy is not ready: it lacks {', '.join(lacks)}.")
    if not strange and "migrations" not in lacks:  # counters are compared by what this version counts
        differing = len(counting.check(wait=time.sleep).differences)
        if differing:
            problems.append(
                f"{differing:,} counters are not what the rows say: run `manage.py counters rebuild` there."
            )
    broken = verification.verify(expect).broken
    if broken is not None:
        problems.append(broken.sentence)
    leased = Job.objects.filter(state=Job.State.LEASED).count()
    if leased:
        remarks.append(
            f"{leased:,} orders were being delivered when the backup was made. Their leases end by themselves, and they "
            "are delivered again."
        )
    return problems, remarks


def _unknown_migrations() -> list[str]:
    loader = MigrationLoader(connection)
    return sorted(f"{app}.{name}" for app, name in set(loader.applied_migrations) - set(loader.disk_migrations))
