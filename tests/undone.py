"""Work that leaves nothing behind."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction


class _Undone(Exception):
    """Ends the transaction so that nothing of it stays."""


@contextmanager
def undone() -> Iterator[None]:
    """A transaction that is rolled back at its end."""
    try:
        with transaction.atomic():
            yield
            raise _Undone
    except _Undone:
        pass
