"""Run as a program: proves one SQLite file after the other and prints a JSON object of what was found in each.

`python -m tests.audit.raw_files FOLDER [SEQ:HASH]`; a process of its own, because the tests' own database may be another.
"""

import json
import sys
from pathlib import Path

import django


def main(folder: Path, expect: str) -> None:
    """Every *.sqlite3 file of the folder."""
    django.setup()
    from django.db import connection

    from queue_app.policy.chain import parse_anchor
    from queue_app.services.verification import verify

    found = {}
    for path in sorted(folder.glob("*.sqlite3")):
        connection.close()
        connection.settings_dict["NAME"] = str(path)
        broken = verify(parse_anchor(expect) if expect else None).broken
        found[path.stem] = {"what": broken.what, "sentence": broken.sentence} if broken else None
    print(json.dumps(found))


def build(path: Path) -> None:
    """A fresh database with the story in it, at a path to which DATABASE_URL points."""
    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command

    from tests.audit import story

    call_command("migrate", verbosity=0)
    story.tell(User.objects.create(username="oda").pk, User.objects.create(username="tom").pk)


if __name__ == "__main__":
    if sys.argv[1] == "build":
        build(Path(sys.argv[2]))
    else:
        main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
