"""What gathers by itself and nobody needs: expired sessions, forgotten presences, old failed sign-ins. In small bites."""

from datetime import UTC, datetime

from axes.models import AccessAttempt
from django.contrib.sessions.models import Session
from django.db.models import Model, QuerySet

from queue_app.models import Presence


def _drop(rows: QuerySet[Model], limit: int) -> int:
    some = list(rows.values_list("pk", flat=True)[:limit])
    return rows.filter(pk__in=some).delete()[0]


def _instant(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1_000, UTC)


def forget_sessions(before_ms: int, limit: int) -> int:
    """Drop at most `limit` sessions that expired before the instant; how many."""
    return _drop(Session.objects.filter(expire_date__lt=_instant(before_ms)), limit)


def forget_presences(before_ms: int, limit: int) -> int:
    """Drop at most `limit` signs of somebody looking that are older; how many."""
    return _drop(Presence.objects.filter(seen_at_ms__lt=before_ms), limit)


def forget_sign_ins(before_ms: int, limit: int) -> int:
    """Drop at most `limit` counters of failed sign-ins that are older; how many."""
    return _drop(AccessAttempt.objects.filter(attempt_time__lt=_instant(before_ms)), limit)
