"""A command of the product, run in this process."""

from collections.abc import Callable

import pytest
from django.core.management import CommandError, call_command

Run = Callable[..., tuple[int, str, str]]


def runner(capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs a command and says its exit status, output and error output."""

    def command(*arguments: object) -> tuple[int, str, str]:
        status = 0
        try:
            call_command(*map(str, arguments))
        except SystemExit as end:
            status = int(end.code or 0)
        except CommandError as error:
            return error.returncode, capsys.readouterr().out, str(error)
        said = capsys.readouterr()
        return status, said.out, said.err

    return command
