"""`python -m tests [PYTEST ARGUMENTS]`: the whole suite on SQLite, then unchanged on PostgreSQL 18 from a wheel.

Each on all processors, a file of tests at a time. The exit status is the first that is not 0. For one of the two alone:
`pytest`, or `python -m tests.pgserver pytest`.
"""

import os
import subprocess
import sys

from tests.pgserver import server

ALL_PROCESSORS = ("-n", "auto", "--dist", "loadfile")


def main(arguments: list[str]) -> int:
    """Run both, also when the first fails."""
    environ = {key: value for key, value in os.environ.items() if key != "DATABASE_URL"}
    command = [sys.executable, "-m", "pytest", *ALL_PROCESSORS, *arguments]
    print("== on SQLite", flush=True)
    first = subprocess.run(command, env=environ, check=False).returncode
    os.environ["PG_SOURCE"] = os.environ.get("PG_SOURCE", "wheel")
    with server() as home:
        print("\n== on PostgreSQL", flush=True)
        second = subprocess.run(command, env={**environ, "DATABASE_URL": home.url}, check=False).returncode
    return first or second


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
