"""How long a signed-in session lives: so long without a person at it, and so long in all (ASVS 7.3.1, 7.3.2).

Both limits hold on the server: the row of the session carries the earlier one as its end, and Django opens no row
beyond its end. Django's session store counts by its own clock, so the limits are written in its terms.
"""

from datetime import datetime
from typing import Any

import structlog
from django.contrib.sessions.backends.base import SessionBase
from django.db import DatabaseError

from queue_app import conf
from queue_app.store import database

log = structlog.get_logger(__name__)

END = "session_end"  # the key of the end that nothing moves, an ISO instant
STEP_S = 300  # a session is prolonged at most so often, or every click would write
WAIT_MS = 300  # for the write lock; a page that is only read never waits longer for this


def begin(*, request: Any, **_signal: Any) -> None:
    """At every sign-in (Django's signal): both limits begin anew. The sign-in itself saves the session."""
    _idle_s, whole_s = conf.session_limits_s()
    request.session[END] = request.session.get_expiry_date(expiry=whole_s).isoformat()
    _move_end(request.session)


def has_limits(session: SessionBase) -> bool:
    """Whether the session was begun by a sign-in that knew of limits."""
    return END in session


def prolong(session: SessionBase) -> None:
    """Somebody is there: move the end, unless that was done a moment ago or the whole is what ends the session.

    When the database takes no write now, the session keeps its end: reading must go on with a full disk, too.
    """
    idle_s, _whole_s = conf.session_limits_s()
    at_last = session.get_expiry_date() >= datetime.fromisoformat(session[END])
    if at_last or session.get_expiry_age() > idle_s - min(STEP_S, idle_s // 4):
        return
    _move_end(session)
    try:
        with database.write(limit_ms=WAIT_MS):
            session.save()
    except DatabaseError as error:
        log.warning("session_not_prolonged", code=type(error).__name__)
        session.modified = False


def _move_end(session: SessionBase) -> None:
    idle_s, _whole_s = conf.session_limits_s()
    session.set_expiry(min(session.get_expiry_date(expiry=idle_s), datetime.fromisoformat(session[END])))
