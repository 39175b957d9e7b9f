"""A worker process whose delivery misbehaves: `python -m tests.delivery.puppet WHAT`."""

import os
import sys


def main(what: str) -> None:
    """Deliver what is due with a delivery that does WHAT."""
    import django

    django.setup()
    from queue_app.delivery.worker import Settings, Worker
    from queue_app.management.commands.worker import run
    from queue_app.services.runs import Held

    def deliver(lease: Held) -> bool:
        if what == "vanish":
            os._exit(9)
        if what == "interrupt":
            raise KeyboardInterrupt
        if what == "quit":
            raise SystemExit(5)
        return True

    run(Worker(deliver, Settings("puppet", until_idle=True)))


if __name__ == "__main__":
    main(sys.argv[1])
