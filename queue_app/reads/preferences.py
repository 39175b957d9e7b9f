"""A person's own settings, as they are now."""

from dataclasses import dataclass

from queue_app.models import Preference

THEMES = ("auto", "light", "dark")


@dataclass(frozen=True, slots=True)
class OwnSettings:
    """`language` and `time_zone` are '' where the person leaves them to the browser and to the site."""

    language: str = ""
    time_zone: str = ""
    theme: str = "auto"
    single_keys: bool = True


def own_settings(user_id: int) -> OwnSettings:
    """The settings of this person; somebody who never chose has the defaults. One query."""
    row = Preference.objects.filter(user_id=user_id).values("language", "time_zone", "theme", "single_keys").first()
    return OwnSettings(**row) if row else OwnSettings()
