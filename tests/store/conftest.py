"""What the tests of the store share."""

import threading

import pytest
from django.db import connection


@pytest.fixture
def elsewhere():
    """`elsewhere(work)`: do it in another thread, on a connection of its own, and wait for its end."""

    def run(work):
        def whole():
            try:
                work()
            finally:
                connection.close()

        thread = threading.Thread(target=whole)
        thread.start()
        thread.join()

    return run
