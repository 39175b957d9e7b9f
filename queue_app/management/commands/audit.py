"""`manage.py audit`: prove the record whole, or print the anchor to be kept elsewhere."""

import json
import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from queue_app.management import reconcile_words
from queue_app.management.commands.reconcile import compared
from queue_app.management.help_lines import HelpLines
from queue_app.policy.chain import Anchor, InvalidAnchor, Link, parse_anchor
from queue_app.policy.ledgers import BadLedger
from queue_app.policy.refusals import shown
from queue_app.reads import chain
from queue_app.services.reconciling import Result
from queue_app.services.verification import Broken, Report, verify

EPILOG = """
`audit head` prints SEQ:HASH, the anchor. Keep it where nobody who can write to the database can
change it: a mail, a ticket, another machine. Every export carries one too. `audit verify` alone
finds a row that was changed, removed, inserted or moved. With --expect it also finds a tail that
was cut off, a tail that was written anew, and an old backup put in place of the database.
This makes tampering evident; it does not make it impossible. The chain covers what people and
redrives did, not the orders themselves: --receiver also holds every order against the receiver's
ledger, which shows a row changed by a faulty disk, and a database older than its receiver.

exit status: 0 whole; 1 broken (the first broken row and its neighbours are named), or different
from the receiver; 2 wrong usage, or one of the two cannot be read
"""


class Command(BaseCommand):
    """Two small questions to the record; the rules are in `services.verification`."""

    help = "Prove that the record of people's acts and of redrives is whole, or print its anchor."

    def add_arguments(self, parser: CommandParser) -> None:
        """`verify` and `head`."""
        parser.formatter_class = HelpLines
        parser.epilog = EPILOG
        parts = parser.add_subparsers(dest="part", metavar="verify|head", required=True)
        proof = parts.add_parser("verify", help="prove the record whole, or name the first broken row")
        proof.add_argument("--expect", metavar="SEQ:HASH", help="an anchor that was kept elsewhere")
        proof.add_argument(
            "--receiver", nargs="?", const="", metavar="URL", help="compare with the receiver's ledger too"
        )
        head = parts.add_parser("head", help="print the anchor")
        for part in (proof, head):
            part.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Exit statuses as documented in EPILOG."""
        try:
            if options["part"] == "head":
                self._head(as_json=options["json"])
                return
            text = options.get("expect")
            expect = None if text is None else parse_anchor(text)
            report = verify(expect)
            asked = options.get("receiver")
            result = None if asked is None else compared(asked or None)
        except (InvalidAnchor, BadLedger, ValueError) as error:
            raise CommandError(str(error), returncode=2) from None
        except DatabaseError:
            raise CommandError("The database cannot be read; nothing is proved.", returncode=2) from None
        self.stdout.write(
            json.dumps(_record(report, expect, result)) if options["json"] else _words(report, expect, result)
        )
        if not report.whole or (result is not None and result.differing):
            sys.exit(1)

    def _head(self, *, as_json: bool) -> None:
        anchor = chain.anchor()
        if anchor is None:
            raise CommandError("The head row of the chain is missing.", returncode=2)
        self.stdout.write(
            json.dumps({"anchor": str(anchor), "seq": anchor.seq, "hash": anchor.hash}) if as_json else str(anchor)
        )


def _words(report: Report, expect: Anchor | None, result: Result | None) -> str:
    return "\n".join([_proof(report, expect), *([] if result is None else reconcile_words.of_result(result))])


def _proof(report: Report, expect: Anchor | None) -> str:
    looked = f"{report.events:,} events and {report.redrives:,} redriven orders"
    if report.broken is None:
        kept = f" The anchor {expect} is in it." if expect else ""
        return f"Whole: {looked}.{kept}\nhead: {report.head}"
    broken = report.broken
    lines = [
        f"BROKEN: {broken.sentence}",
        f"table: {broken.table}; what differs: {', '.join(broken.what)}",
        f"proved before it: {looked}, up to {report.head}",
    ]
    for name in ("before", "row", "after"):
        if row := getattr(broken, name):
            lines.append(f"{name}: {row.title}, hash {_shown_hash(row)}")
    return "\n".join(lines)


def _record(report: Report, expect: Anchor | None, result: Result | None) -> dict[str, object]:
    return {
        "whole": report.whole,
        "events": report.events,
        "redrives": report.redrives,
        "head": str(report.head),
        "expected": str(expect) if expect else None,
        "broken": _broken(report.broken) if report.broken else None,
        **({"receiver": asdict(result)} if result else {}),
    }


def _broken(broken: Broken) -> dict[str, object]:
    places = {name: _place(getattr(broken, name)) for name in ("row", "before", "after")}
    return {"table": broken.table, "what": list(broken.what), "sentence": broken.sentence, **places}


def _place(row: Link | None) -> dict[str, object] | None:
    if row is None:
        return None
    key = "seq" if row.table == "audit" else "id"
    values = {key: row.key, "link": row.link, "hash": row.hash}
    return {
        "table": row.table,
        **{name: value if type(value) in (int, str) else shown(value) for name, value in values.items()},
    }


def _shown_hash(row: Link) -> str:
    """The stored hash whole, if it still looks like one."""
    return row.hash if isinstance(row.hash, str) and row.hash.isalnum() and len(row.hash) == 64 else shown(row.hash)
