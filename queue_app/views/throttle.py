"""How often somebody may fail to sign in: so often per name and address (axes), and so often per address over all names.

Both are waits, not lockouts that only an administrator ends. A success forgives the failures of its own name only, so
an account of one's own does not buy more guesses at others.
"""

from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Any

from axes.attempts import get_cool_off_threshold
from axes.handlers.database import AxesDatabaseHandler
from axes.helpers import get_client_username, get_cool_off, get_failure_limit
from axes.models import AccessAttempt
from django.db.models import QuerySet
from django.http import HttpRequest

from queue_app import conf
from queue_app.services import sessions
from queue_app.services.people import actor_of


def client_address(request: HttpRequest) -> str:
    """Where a request comes from. X-Forwarded-For counts only behind the proxy that the installation names, and then only
    its last entry: the proxy added that one, and everybody else may have written the ones before it.
    """
    peer = str(request.META.get("REMOTE_ADDR", ""))
    if not conf.behind_proxy():
        return peer
    last = str(request.META.get("HTTP_X_FORWARDED_FOR", "")).rpartition(",")[2].strip()
    try:
        return str(ip_address(last))
    except ValueError:
        return peer


class Throttle(AxesDatabaseHandler):
    """axes' own counting, a limit per address on top, and an event for each failure that was counted."""

    def is_locked(self, request: Any, credentials: Any = None) -> bool:
        """Whether this name from this address, or this address, has to wait."""
        return bool(super().is_locked(request, credentials)) or self._address_waits(request)

    def user_login_failed(self, sender: Any, credentials: Any, request: Any = None, **kwargs: Any) -> None:
        """Count and record a failure. A try during a wait is neither: a stranger cannot fill the record."""
        denied = bool(getattr(request, "axes_locked_out", False))
        super().user_login_failed(sender, credentials, request, **kwargs)
        if request is None or denied:
            return
        if self._address_waits(request):
            request.axes_locked_out, request.axes_credentials = True, credentials
        name, waits = get_client_username(request, credentials) or "", bool(request.axes_locked_out)
        user = getattr(request, "user", None)
        if user is not None and user.is_authenticated:
            actor = actor_of(user, channel="console", proof="session")
            sessions.reproof_failed(actor, request.axes_ip_address, waits=waits)
        else:
            sessions.sign_in_failed(name, request.axes_ip_address, waits=waits)

    @staticmethod
    def _address_waits(request: Any) -> bool:
        counted: list[int] = list(_recent(request).values_list("failures_since_start", flat=True))
        return sum(counted) >= conf.sign_in_tries_per_address()


def waits_until(request: Any, name: str) -> datetime | None:
    """When the wait of this name from this address ends, if nobody fails again; None when nothing is counted."""
    recent, wait = _recent(request), get_cool_off(request) or timedelta()
    both = [
        (recent.filter(username=name), get_failure_limit(request, {"username": name})),
        (recent, conf.sign_in_tries_per_address()),
    ]
    ends = [at for rows, limit in both if (at := _falls_below(rows, limit)) is not None]
    return max(ends) + wait if ends else None


def _falls_below(rows: QuerySet[AccessAttempt], limit: int) -> datetime | None:
    """The time of the failure whose forgetting ends the wait; None when it is not reached."""
    counted: list[tuple[datetime, int]] = list(
        rows.order_by("attempt_time").values_list("attempt_time", "failures_since_start")
    )
    left = sum(number for _at, number in counted)
    if left < limit:
        return None
    for at, number in counted:
        left -= number
        if left < limit:
            return at
    return None


def _recent(request: Any) -> QuerySet[AccessAttempt]:
    found: QuerySet[AccessAttempt] = AccessAttempt.objects.filter(
        ip_address=request.axes_ip_address, attempt_time__gte=get_cool_off_threshold(request)
    )
    return found
