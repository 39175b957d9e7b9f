"""What code does inside a transaction, read from its text: `offences(sources)` names what must not be there (fault F26).

Inside a transaction somebody else waits: so nothing in it may wait for a network, a slow client, another process, a person
or a clock, itself or in what it calls; and it begins in one way, which takes the write lock at BEGIN.
"""

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.test_rooms import full_name, imported, parsed

HOME = "queue_app/store/database.py"  # the one that begins transactions
BEGINNERS = frozenset({"queue_app.store.database.write", "django.db.transaction.atomic"})
BY_HAND = ("set_autocommit", "non_atomic_requests", "ATOMIC_REQUESTS")
# what waits for somebody: modules of which everything does, functions, and methods of whatever they are called on
SLOW_MODULES = frozenset({
    "asyncio", "ftplib", "http",
    "httpcore2", "httpx2", "requests", "select", "smtplib", "socket", "ssl", "subprocess", "urllib",
})  # fmt: skip
SLOW = frozenset({"time.sleep", "input", "open", "os.system", "os.fsync"})
SLOW_METHODS = frozenset({
    "deliver", "page", "urlopen", "recv", "send", "sendall", "iterator", "communicate", "write_text", "read_text",
})  # fmt: skip
# meant so: where, what it leads to, and why
MEANT = {
    ("queue_app/store/backups.py", "subprocess.run"): "a dump of one state; it reads only, and holds no row's lock",
}

_WRITES = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE|CREATE|DROP|ALTER)\b")
_ENDS = re.compile(r"\s*(COMMIT|ROLLBACK|END|BEGIN IMMEDIATE)\b")


@dataclass
class Function:
    """A function's calls by line and full name: all of them, and those inside a transaction that it begins itself."""

    path: str
    calls: list[tuple[int, str]] = field(default_factory=list)
    within: list[tuple[int, str]] = field(default_factory=list)
    yields: list[int] = field(default_factory=list)  # inside a transaction
    manages: bool = False  # a context manager: whoever enters it stands inside, too


def offences(sources: Mapping[str, str]) -> list[str]:
    """Path, line and what stands there, with the way to it. `sources`: text by path of the repository."""
    beginners, functions = BEGINNERS, _all_functions(sources, BEGINNERS)
    while more := {name for name, one in functions.items() if one.manages and one.yields} - beginners:
        beginners |= more
        functions = _all_functions(sources, beginners)
    found = [offence for path, source in sources.items() for offence in _by_hand(path, source)]
    for one in functions.values():
        if not one.manages:
            found += [f"{one.path}:{line} yields inside a transaction" for line in one.yields]
        for line, call in one.within:
            way = _slow_way(call, functions, set())
            if way and (one.path, way[-1]) not in MEANT:
                found.append(f"{one.path}:{line} {' -> '.join(way)}")
    return found


def _all_functions(sources: Mapping[str, str], beginners: frozenset[str]) -> dict[str, Function]:
    found = {}
    for path, source in sources.items():
        if path != HOME:
            found |= dict(_functions(path, source, beginners))
    return found


@functools.cache
def _functions(path: str, source: str, beginners: frozenset[str]) -> tuple[tuple[str, Function], ...]:
    return tuple(_read(path, source, beginners))


def _read(path: str, source: str, beginners: frozenset[str]) -> Iterator[tuple[str, Function]]:
    module = path.removesuffix(".py").replace("/", ".")
    tree, names = parsed(source), imported(source)
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for place in [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]:
        of = f"{module}.{place.name}" if isinstance(place, ast.ClassDef) else module
        for node in place.body:
            if isinstance(node, ast.FunctionDef):
                managed = any(full_name(one, names) == "contextlib.contextmanager" for one in node.decorator_list)
                reader = _Reader(of, module, own, names, beginners, Function(path, manages=managed))
                reader.read(node, inside=False)
                yield f"{of}.{node.name}", reader.function


@dataclass
class _Reader:
    """Reads one function, with the functions that are made inside it: those are read as if called on the spot."""

    of: str
    module: str
    own: set[str]
    names: Mapping[str, str]
    beginners: frozenset[str]
    function: Function

    def read(self, node: ast.AST, *, inside: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call):
                called = (child.lineno, self._named(child.func))
                self.function.calls.append(called)
                if inside:
                    self.function.within.append(called)
            if isinstance(child, ast.Yield | ast.YieldFrom) and inside:
                self.function.yields.append(child.lineno)
            here = inside
            if isinstance(child, ast.With):
                calls = [one.context_expr for one in child.items if isinstance(one.context_expr, ast.Call)]
                here = inside or any(self._named(call.func) in self.beginners for call in calls)
            self.read(child, inside=here)

    def _named(self, node: ast.expr) -> str:
        name = full_name(node, self.names)  # type: ignore[arg-type]
        if name.startswith("self.") and name.count(".") == 1:
            return f"{self.of}.{name.removeprefix('self.')}"
        return f"{self.module}.{name}" if name.split(".")[0] in self.own else name


def _slow_way(call: str, functions: Mapping[str, Function], passed: set[str]) -> list[str]:
    """The calls that lead from here to something slow; empty when none does. `passed`: from where none did."""
    if call in passed:
        return []
    if call in SLOW or call.split(".")[0] in SLOW_MODULES or ("." in call and call.rpartition(".")[2] in SLOW_METHODS):
        return [call]
    passed.add(call)
    for _, next_call in functions[call].calls if call in functions else ():
        way = _slow_way(next_call, functions, passed)
        if way:
            return [call, *way]
    return []


@functools.cache
def _by_hand(path: str, source: str) -> tuple[str, ...]:
    """A transaction that is begun by hand and could write without the lock, or that is opened too wide."""
    found = []
    for node in ast.walk(parsed(source)):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if name in BY_HAND:
            found.append(f"{path}:{node.lineno} {name}")
        if isinstance(node, ast.FunctionDef):
            found += [f"{path}:{line} writes after a BEGIN that takes no lock" for line in _unlocked_writes(node)]
    return tuple(found)


def _unlocked_writes(function: ast.FunctionDef) -> list[int]:
    """Lines of statements that write, or are not read here, between a plain BEGIN and its end."""
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and node.args]
    said = [
        node for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr in ("execute", "transaction")
    ]
    found, open_since = [], 0
    for call in sorted(said, key=lambda node: (node.lineno, node.col_offset)):
        text = call.args[0].value if isinstance(call.args[0], ast.Constant) else None
        if isinstance(text, str) and re.fullmatch(r"\s*BEGIN( DEFERRED)?( TRANSACTION)?;?\s*", text):
            open_since = call.lineno
        elif isinstance(text, str) and _ENDS.match(text):
            open_since = 0
        elif open_since and (not isinstance(text, str) or _WRITES.match(text)):
            found.append(call.lineno)
    return found
