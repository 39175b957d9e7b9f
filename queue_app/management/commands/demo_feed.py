"""`manage.py demo_feed`: the demo's stream of orders (started by `manage.py demo`)."""

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from queue_app import clock
from queue_app.demo.feeder import feed_until


class Command(BaseCommand):
    """Feeds the sample, then new orders, until SIGTERM."""

    help = "Feed the demo with the sample orders and then with new ones, until told to stop."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Feed until told to stop."""
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        feed_until(stop, format(clock.now_ms() // 1000, "x"))
