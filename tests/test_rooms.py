"""The rooms of the code keep their doors: who may import whom, and who alone may do what.

Every rule is a function from a file to its offences, so that each is tried on the whole product and on a planted one.
"""

import ast
import functools
import re
import subprocess
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
from django.core.management import call_command

from tests.conftest import BASE_DIR

# A room may import from rooms with a smaller number only. A new room must be given its place here.
PLACE = {
    "policy": 0,
    "models": 1,
    "clock": 2,
    "conf": 2,
    "store": 3,
    "reads": 3,
    "templatetags": 3,
    "services": 4,
    "checks": 4,
    "apps": 5,
    "delivery": 5,
    "views": 5,
    "demo": 6,
    "urls": 6,
    "management": 7,
}
TOP_LEVEL = {"manage.py", "pyproject.toml", "README.md", "snackops", "queue_app", "templates", "static", "tests"}
CLOCKS = {
    *("time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "time.perf_counter", "time.perf_counter_ns"),
    *("time.localtime", "time.gmtime", "time.strftime", "time.ctime"),
    *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today"),
    "django.utils.timezone.now",
}
CLOCKS_WITHOUT_ARGUMENTS = {"django.utils.timezone.localtime", "django.utils.timezone.localdate"}
IMPURE = {"django", "time", "random", "secrets", "uuid", "os", "socket", "subprocess", "threading", "pathlib"}
WHO_SIGNS_IN = {"queue_app/views/account.py", "queue_app/views/throttle.py"}  # these say who it was, and ask nothing
RAW_SQL = {"cursor", "raw", "extra", "RawSQL", "executescript"}
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc", "shared", "base_utils"}

Rule = Callable[[str, str], list[str]]


# --- reading code ---------------------------------------------------------------------------------------------------
def room_of(path: str) -> str:
    """`queue_app/store/jobs.py` -> `store`, `queue_app/clock.py` -> `clock`; '' outside the app and for its root."""
    parts = PurePosixPath(path).with_suffix("").parts
    return parts[1] if len(parts) > 1 and parts[0] == "queue_app" and parts[1] != "__init__" else ""


@functools.cache
def parsed(source: str) -> ast.Module:
    return ast.parse(source)


@functools.cache
def imported(source: str) -> dict[str, str]:
    """Name in the file -> full dotted name of what it stands for."""
    names = {}
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name] = alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names[alias.asname or alias.name] = f"{'.' * node.level}{node.module or ''}.{alias.name}"
    return names


def full_name(node: ast.expr, names: dict[str, str]) -> str:
    """A dotted name with its first part written out as imported."""
    first, _, rest = ast.unparse(node).partition(".")
    return ".".join(filter(None, [names.get(first, first), rest]))


@functools.cache
def used(source: str) -> tuple[str, ...]:
    """Every dotted name that is used."""
    names = imported(source)
    return tuple(full_name(n, names) for n in ast.walk(parsed(source)) if isinstance(n, ast.Attribute | ast.Name))


# --- the rules ------------------------------------------------------------------------------------------------------
def imports_point_left(path: str, source: str) -> list[str]:
    """Data flows one way; the receiver knows nothing of the rest, and only its command knows the receiver."""
    here = room_of(path)
    if not here or here == "migrations":
        return []
    offences = [f"{name} is relative" for name in imported(source).values() if name.startswith(".")]
    for name in imported(source).values():
        there = room_of(name.replace(".", "/"))
        if not there or there == here:
            continue
        command = here == "management" and there == "receiver"
        if here == "receiver" or (there == "receiver" and not command) or (not command and PLACE[there] >= PLACE[here]):
            offences.append(name)
    return offences


def policy_is_pure(path: str, source: str) -> list[str]:
    """Values in, values out: what policy decides can be decided again."""
    if room_of(path) != "policy":
        return []
    return [name for name in imported(source).values() if name.split(".")[0] in IMPURE or name == "queue_app.conf"]


def one_reader_of_clocks(path: str, source: str) -> list[str]:
    """Only clock.py asks for the time, so that a test can."""
    if not path.startswith("queue_app/") or path == "queue_app/clock.py":
        return []
    calls = (node for node in ast.walk(parsed(source)) if isinstance(node, ast.Call) and not node.args)
    bare = {full_name(node.func, imported(source)) for node in calls if not node.keywords}
    names = {*imported(source).values(), *used(source)}
    return sorted((names & CLOCKS) | (bare & CLOCKS_WITHOUT_ARGUMENTS))


def one_reader_of_settings(path: str, source: str) -> list[str]:
    """Only conf.py reads Django's settings, and nobody the environment; the demo hands its own on to its children."""
    if not path.startswith("queue_app/") or path == "queue_app/conf.py" or room_of(path) == "migrations":
        return []
    sources = ("django.conf", "snackops.", *(() if room_of(path) == "demo" else ("os.environ", "os.getenv")))
    return sorted({name for name in (*imported(source).values(), *used(source)) if name.startswith(sources)})


def one_knower_of_the_vendor(path: str, source: str) -> list[str]:
    """Only store knows which database it is; models/fields.py, because a column's type must know (ids bytewise)."""
    if not path.startswith("queue_app/") or room_of(path) == "store" or path == "queue_app/models/fields.py":
        return []
    return [name for name in used(source) if name.endswith(".vendor") or name == "vendor"]


def raw_sql_has_its_rooms(path: str, source: str) -> list[str]:
    """Raw SQL stands where the vendor is known or rows become values."""
    if not path.startswith("queue_app/") or room_of(path) in {"store", "reads", "migrations", "receiver"}:
        return []
    calls = (node.func for node in ast.walk(parsed(source)) if isinstance(node, ast.Call))
    names = {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}
    return sorted(names & RAW_SQL)


def modules_are_named_after_nouns(path: str, _source: str) -> list[str]:
    """A vague name collects everything."""
    return sorted(set(PurePosixPath(path).with_suffix("").parts) & VAGUE)


def rights_are_asked_in_services(path: str, source: str) -> list[str]:
    """A refusal that a page or a command makes itself is missing in the record (DESIGN section 9)."""
    if room_of(path) not in {"views", "management", "templatetags"}:
        return []
    asking = {"people.require", "people.record_refusal", "asking.recorded"}
    if path not in WHO_SIGNS_IN:
        asking.add("people.actor_of")
    return sorted({*imported(source).values(), *used(source)} & {f"queue_app.services.{name}" for name in asking})


RULES: list[Rule] = [
    rights_are_asked_in_services,
    imports_point_left,
    policy_is_pure,
    one_reader_of_clocks,
    one_reader_of_settings,
    one_knower_of_the_vendor,
    raw_sql_has_its_rooms,
    modules_are_named_after_nouns,
]


def python_files() -> list[Path]:
    return sorted(path for top in ("queue_app", "snackops") for path in (BASE_DIR / top).rglob("*.py"))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_product_keeps_the_rule(rule: Rule) -> None:
    files = {str(path.relative_to(BASE_DIR)): path.read_text() for path in python_files()}
    assert len(files) > 40
    found = {name: rule(name, source) for name, source in files.items()}
    assert {name: offences for name, offences in found.items() if offences} == {}


PLANTED = [
    (imports_point_left, "queue_app/policy/x.py", "from queue_app.models import Job"),
    (imports_point_left, "queue_app/policy/x.py", "from queue_app import clock"),
    (imports_point_left, "queue_app/models/x.py", "import queue_app.store.jobs"),
    (imports_point_left, "queue_app/models/x.py", "from queue_app import clock as time"),
    (imports_point_left, "queue_app/store/x.py", "def f():\n    from queue_app.services import queue"),
    (imports_point_left, "queue_app/reads/x.py", "from queue_app.store import jobs"),
    (imports_point_left, "queue_app/services/x.py", "from queue_app.delivery.http import Adapter"),
    (imports_point_left, "queue_app/services/x.py", "from ..delivery import http"),
    (imports_point_left, "queue_app/delivery/x.py", "from queue_app.views import overview"),
    (imports_point_left, "queue_app/receiver/x.py", "from queue_app.policy.orders import Order"),
    (imports_point_left, "queue_app/receiver/x.py", "from queue_app import clock"),
    (imports_point_left, "queue_app/services/x.py", "from queue_app.receiver import ledger"),
    (policy_is_pure, "queue_app/policy/x.py", "from django.utils import timezone"),
    (policy_is_pure, "queue_app/policy/x.py", "import random"),
    (policy_is_pure, "queue_app/policy/x.py", "from secrets import token_hex"),
    (policy_is_pure, "queue_app/policy/x.py", "import os.path"),
    (one_reader_of_clocks, "queue_app/policy/x.py", "import datetime\ndatetime.datetime.now()"),
    (one_reader_of_clocks, "queue_app/policy/x.py", "from datetime import datetime as d\nd.now(tz=None)"),
    (one_reader_of_clocks, "queue_app/store/x.py", "import time\nx = time.time_ns() // 10"),
    (one_reader_of_clocks, "queue_app/store/x.py", "from time import monotonic as m\nm()"),
    (one_reader_of_clocks, "queue_app/views/x.py", "from django.utils import timezone\ntimezone.now()"),
    (one_reader_of_clocks, "queue_app/views/x.py", "from django.utils.timezone import localtime as l\nl()"),
    (one_reader_of_clocks, "queue_app/receiver/x.py", "from datetime import date\ndate.today()"),
    (one_reader_of_settings, "queue_app/views/x.py", "from django.conf import settings"),
    (one_reader_of_settings, "queue_app/delivery/x.py", "import os\nos.environ['X']"),
    (one_reader_of_settings, "queue_app/delivery/x.py", "from snackops.env import Env"),
    (one_knower_of_the_vendor, "queue_app/reads/x.py", "from django.db import connection\nconnection.vendor"),
    (one_knower_of_the_vendor, "queue_app/services/x.py", "import django.db as d\nd.connection.vendor == 'sqlite'"),
    (raw_sql_has_its_rooms, "queue_app/views/x.py", "from django.db import connection\nconnection.cursor()"),
    (raw_sql_has_its_rooms, "queue_app/services/x.py", "Job.objects.raw('SELECT 1')"),
    (raw_sql_has_its_rooms, "queue_app/services/x.py", "RawSQL('1', [])"),
    (rights_are_asked_in_services, "queue_app/views/x.py", "from queue_app.services.people import require"),
    (rights_are_asked_in_services, "queue_app/views/x.py", "from queue_app.services import people\npeople.actor_of(1)"),
    (rights_are_asked_in_services, "queue_app/views/account.py", "from queue_app.services.asking import recorded as r"),
    (
        rights_are_asked_in_services,
        "queue_app/management/commands/x.py",
        "from queue_app.services.people import actor_of",
    ),
    (modules_are_named_after_nouns, "queue_app/store/utils.py", ""),
    (modules_are_named_after_nouns, "queue_app/common/jobs.py", ""),
]


@pytest.mark.parametrize(("rule", "path", "source"), PLANTED)
def test_a_planted_offence_is_found(rule: Rule, path: str, source: str) -> None:
    assert rule(path, source) != []


def test_a_new_room_must_be_given_its_place() -> None:
    with pytest.raises(KeyError):
        imports_point_left("queue_app/attic/x.py", "from queue_app.models import Job")


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("queue_app/policy/x.py", "from datetime import datetime, UTC\ndatetime.fromtimestamp(0, UTC)"),
        ("queue_app/views/x.py", "from django.utils import timezone\ntimezone.localtime(instant)"),
        ("queue_app/store/x.py", "from queue_app import clock\nfrom queue_app.models import Job\nclock.now_ms()"),
        ("queue_app/management/commands/receiver.py", "from queue_app.receiver import server"),
        ("queue_app/receiver/x.py", "from queue_app.receiver import ledger\nledger.cursor()"),
        ("queue_app/views/throttle.py", "from queue_app.services.people import actor_of"),
        ("queue_app/views/x.py", "from queue_app.services.people import Actor, may_see_payload"),
        ("queue_app/migrations/0002_x.py", "from django.conf import settings\nimport queue_app.models.fields"),
    ],
)
def test_what_is_allowed_is_not_found(path: str, source: str) -> None:
    assert {rule.__name__: rule(path, source) for rule in RULES if rule(path, source)} == {}


# --- the repository -------------------------------------------------------------------------------------------------
def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=BASE_DIR, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name]


def strangers_at_the_top(names: list[str]) -> set[str]:
    return {name.split("/")[0] for name in names if not name.startswith(".")} - TOP_LEVEL


def lock_files(names: list[str]) -> set[str]:
    return {name for name in names if PurePosixPath(name).name in {"uv.lock", "pylock.toml", "poetry.lock"}}


# written in parts, or this file would name them
REGISTRY = re.compile("|".join([r"pypi\W?org", r"python" + "hosted", r"registry\.npm" + "js", "index" + "-url"]))


def test_the_top_level_is_fixed() -> None:
    names = tracked()
    assert "manage.py" in names
    assert strangers_at_the_top(names) == set()
    assert strangers_at_the_top(["notes.txt", "queue_app/x.py", ".ci/run"]) == {"notes.txt"}


def test_no_lock_file_and_no_registry_is_named() -> None:
    names = tracked()
    assert lock_files(names) == set()
    assert lock_files(["uv.lock", "a/pylock.toml"]) == {"uv.lock", "a/pylock.toml"}
    files = [
        BASE_DIR / name for name in names if (BASE_DIR / name).is_file() and (BASE_DIR / name).stat().st_size < 10**6
    ]
    assert [path.name for path in files if REGISTRY.search(path.read_text(errors="replace"))] == []
    assert REGISTRY.search("https://pypi" + ".org/simple")


@pytest.mark.django_db
def test_every_model_change_has_its_migration(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("makemigrations", check_changes=True, dry_run=True)
    assert "No changes detected" in capsys.readouterr().out
