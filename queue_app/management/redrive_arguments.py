"""The arguments of `manage.py redrive`, and what they mean as values."""

from typing import Any
from zoneinfo import ZoneInfo

from django.core.management.base import CommandParser

from queue_app import conf
from queue_app.policy.approvals import Tightening
from queue_app.policy.filters import parse
from queue_app.policy.plans import InvalidPlan
from queue_app.policy.selections import Selection, by_filter, by_ids
from queue_app.policy.terms import (
    BUDGET_MS,
    DEAD_MS,
    MAX_CANARY,
    MAX_CAP,
    WAIT_MS,
    Terms,
    check_terms,
    parse_percent,
    parse_rate,
    parse_span,
    parse_whole,
    preset,
)
from queue_app.store import queues

MAX_ID = 2**63 - 1
FILTERS = (
    "queue",
    "reason",
    "code",
    "effect",
    "died-from",
    "died-to",
    "min-age",
    "max-age",
    "attempts-min",
    "attempts-max",
    "redriven",
    "looked",
)


def add_person(parser: CommandParser, *, note: str) -> None:
    """Who acts, and the note: required, optional or none."""
    parser.add_argument("--as", dest="user", required=True, metavar="USER", help="the account that does this")
    if note:
        parser.add_argument("--note", required=note == "required", default="", help="ticket or reference")
    if note == "required":
        parser.add_argument("--comment", default="", help="free text beside the note")


def add_selection(parser: CommandParser) -> None:
    """Which orders."""
    parser.add_argument("--id", action="append", default=[], metavar="ID", help="an order; may be given many times")
    for name in FILTERS:
        parser.add_argument(f"--{name}", action="append", default=[], help="as in `manage.py quarantine`")


def add_terms(parser: CommandParser) -> None:
    """How."""
    parser.add_argument("--preset", choices=("careful", "normal"), default="normal")
    parser.add_argument("--rate", help="orders per second, 0.01 to 20000 (default: the queue's usual rate)")
    parser.add_argument(
        "--step", action="append", default=[], metavar="RATE:SECONDS", help="a pace that leads up to the rate"
    )
    parser.add_argument("--cap", help="the first N only, oldest first")
    parser.add_argument("--canary", help="size of the trial; 0: none")
    parser.add_argument("--stop", metavar="PERCENT", help="the share of deaths that stops it")
    parser.add_argument("--canary-wait", metavar="SPAN", help="how long the trial's results may take: 90s, 10m, 2h")
    parser.add_argument("--max-dead", metavar="SPAN", help="not if dead for longer than 36h, 7d")
    parser.add_argument("--max-attempts", help="tries of the new budget (default: the order's own)")
    parser.add_argument("--budget", metavar="SPAN", help="time of the new budget (default: the queue's)")


def selection_of(options: dict[str, Any]) -> Selection:
    """What `--id` or the filter's options mean. InvalidPlan, InvalidOrder or FilterError."""
    given = {name.replace("-", "_"): options[name.replace("-", "_")] for name in FILTERS}
    given = {name: values for name, values in given.items() if values}
    if options["id"] and given:
        raise InvalidPlan("Give either --id or a filter.", field="id")
    if options["id"]:
        return by_ids(options["id"])
    return by_filter(parse(given, queues=queues.policies(), zone=ZoneInfo(conf.site_time_zone())))


def terms_of(options: dict[str, Any], queue: str) -> Terms:
    """The preset of the queue with what was given in its place. InvalidPlan."""
    policy = queues.policy_of(queue)
    base = preset(options["preset"], policy.rate_mj if policy else 5_000)

    def given(name: str, read: Any, usual: Any) -> Any:
        return usual if options[name] is None else read(options[name])

    return check_terms(
        Terms(
            rate_mj=given("rate", parse_rate, base.rate_mj),
            steps=tuple(_step(text) for text in options["step"]),
            cap=given("cap", lambda text: parse_whole(text, "cap", 1, MAX_CAP), None),
            canary=given("canary", lambda text: parse_whole(text, "canary", 0, MAX_CANARY), base.canary),
            stop_permille=given("stop", parse_percent, base.stop_permille),
            canary_wait_ms=given(
                "canary_wait", lambda text: parse_span(text, "canary_wait", WAIT_MS), base.canary_wait_ms
            ),
            max_dead_ms=given("max_dead", lambda text: parse_span(text, "max_dead", DEAD_MS), None),
            max_attempts=given("max_attempts", lambda text: parse_whole(text, "max_attempts", 1, 100), None),
            budget_ms=given("budget", lambda text: parse_span(text, "budget", BUDGET_MS), None),
        )
    )


def tightening_of(options: dict[str, Any]) -> Tightening:
    """What the approver makes stricter."""
    left_out = []
    for text in options["leave_out"]:
        reason, _, code = text.partition("/")
        left_out.append((reason, "" if code == "-" else code))
    return Tightening(
        None if options["rate"] is None else parse_rate(options["rate"]),
        None if options["canary"] is None else parse_whole(options["canary"], "canary", 0, MAX_CANARY),
        tuple(left_out),
    )


def number_of(text: str) -> int:
    """The number of a redrive, with or without `R-`. InvalidPlan."""
    return parse_whole(text.removeprefix("R-"), "number", 1, MAX_ID if len(text) < 13 else 0)


def _step(text: str) -> tuple[int, int]:
    rate, _, seconds = text.partition(":")
    return parse_rate(rate, "steps"), parse_whole(seconds, "steps", 1, 86_400)
