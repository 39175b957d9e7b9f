"""The only reader of Django's settings inside the app: one function for each thing that an installation may set."""

from pathlib import Path

from django.conf import settings


def data_dir() -> Path:
    """The folder of run-time data (databases, secret key)."""
    return Path(settings.DATA_DIR)


def receiver_url() -> str:
    """Where orders are delivered: an http(s) address without a slash at its end."""
    return str(settings.RECEIVER_URL)


def delivery_times_ms() -> tuple[int, int, int]:
    """Limits of one delivery in ms: connect, read, and the total over both."""
    return settings.DELIVERY_CONNECT_MS, settings.DELIVERY_READ_MS, settings.DELIVERY_TOTAL_MS


def solo_approval() -> bool:
    """Whether one person may approve the own plan (SNACKOPS_SOLO_APPROVAL; every page and row says so)."""
    return bool(settings.SOLO_APPROVAL)


def site_time_zone() -> str:
    """The zone of people who chose none."""
    return str(settings.TIME_ZONE)


def static_root() -> Path:
    """Where collected static files lie; an empty folder is enough."""
    return Path(settings.STATIC_ROOT)


def base_dir() -> Path:
    """The folder of manage.py."""
    return Path(settings.BASE_DIR)
