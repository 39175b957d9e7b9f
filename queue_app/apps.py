"""The app: what must stand after every migration."""

from typing import Any

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in
from django.db.models.signals import post_migrate, pre_migrate


class QueueAppConfig(AppConfig):
    """Registers the guard of the database and the default rows (DESIGN section 3, traps)."""

    name = "queue_app"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect post_migrate and the sign-in; imports wait until the models are loaded."""
        from queue_app import checks  # noqa: F401 - registers the system checks
        from queue_app.services import session_limits

        user_logged_in.connect(session_limits.begin)
        pre_migrate.connect(_before_migrate, sender=self)
        post_migrate.connect(_after_migrate, sender=self)


def _before_migrate(*, using: str, **_kwargs: Any) -> None:
    """A migration may build an index over millions of rows: no statement of it is too long."""
    from queue_app.store import database

    database.take_time(using)


def _after_migrate(*, using: str, **_kwargs: Any) -> None:
    """Django's table remake on SQLite drops triggers silently, and a test's flush empties all tables: restore both."""
    from queue_app.store import database, defaults, triggers, tuning

    triggers.create_all(using)
    tuning.create_all(using)
    defaults.create_all(using)
    database.take_the_usual_time(using)
