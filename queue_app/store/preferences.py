"""Keeping a person's own settings."""

from typing import Any

from queue_app.models import Preference


def keep(user_id: int, **chosen: Any) -> None:
    """Write only the named settings (language, time_zone, theme, single_keys); two at once do not undo each other."""
    Preference.objects.update_or_create(user_id=user_id, defaults=chosen)
