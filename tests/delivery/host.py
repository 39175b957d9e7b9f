"""`python -m tests.delivery.host NAME COMMAND...`: manage.py on a machine that has this name."""

import os
import socket
import sys

from django.core.management import execute_from_command_line


def main(name: str, command: list[str]) -> None:
    """Run the command as if this were another host."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "snackops.settings")
    socket.gethostname = lambda: name
    execute_from_command_line(["manage.py", *command])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
