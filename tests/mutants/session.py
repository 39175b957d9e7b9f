"""A plugin of pytest: mutmut tries its mutants from inside one session that has collected its tests already.

mutmut starts pytest anew for every mutant, which costs more than most of our tests do. Here the session is ready before
the first fork: a mutant costs a fork, a copy of a prepared database, and its tests, the quickest first, to the first that
fails. Everything else is mutmut's: the mutants, which tests reach which function, the limits, the results.
"""

import importlib
import os
import resource
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.core.management import call_command
from mutmut import __main__ as mutmut
from mutmut.mutation.trampoline import get_mutant_under_test
from mutmut.runners.harness import ListAllTestsResult, TestRunner
from mutmut.state import state
from mutmut.workers.isolation import ForkRunner, MutantResult, run_in_fork, run_in_fork_with_result
from pytest_django.plugin import blocking_manager_key

from queue_app.store import triggers, triggers_counting, triggers_postgresql
from tests.mutants import worlds

REACH = 8  # times the slowest test, of tests that one mutant is tried with: the quickest of those that reach it
TEST_CPU_S = 4.0  # of processor time for one test: a mutant that loops for ever; waiting for others does not count
MEMORY = 4 * 1024**3  # bytes of address space; one that gathers for ever
SAY_EVERY_S = 20
TIMED_OUT = 36  # mutmut's number
# what writes the database's own rules: its mutants need a database that was set up by them
SETTING_UP = ("queue_app.store.triggers", "queue_app.store.defaults")
LOADED = (triggers_counting, triggers_postgresql)  # their texts are made while they load, so they are loaded anew
PROVE_SETTING_UP = "tests/store/test_triggers_"  # these need not call what set their database up
_NO_FAILURES = (pytest.skip.Exception, pytest.xfail.Exception)
_ends_at_failure = False


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which mutants, and how many at once."""
    parser.addoption("--mutants-file", default="", help="file with a mutant's name a line; none: all")
    parser.addoption("--mutants-jobs", type=int, default=2)
    parser.addoption("--mutants-slow", type=float, default=1.5)


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """After tests/conftest.py has chosen its own profile: the same luck each time, and the first failure is enough."""
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile(
        "mutants", deadline=None, phases=phases, database=None, derandomize=True, report_multiple_bugs=False
    )
    hypothesis.settings.load_profile("mutants")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """In place of pytest's own loop over the tests."""
    named = session.config.getoption("--mutants-file")
    names = Path(named).read_text().split() if named else []
    with session.config.stash[blocking_manager_key].unblock():
        worlds.prepare()
    os.chdir(worlds.BASE)
    mutmut.get_mutant_runner = lambda children: SessionRunner(session, children)
    mutmut.print_stats = lambda *_, **__: None  # it would count all mutants anew for each one
    mutmut._run(names, session.config.getoption("--mutants-jobs"))
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> None:
    """The first failure ends a child that tries a mutant, before anybody writes a report on it."""
    if _ends_at_failure and call.excinfo is not None and not isinstance(call.excinfo.value, _NO_FAILURES):
        end(TIMED_OUT if "from pytest-timeout" in str(call.excinfo.value) else 1)


def end(code: int) -> None:
    """Leave the child at once: what its fixtures would do at their end does not matter."""
    worlds.leave()
    os._exit(code)


def quickest(tests: set[str], limit_s: float) -> set[str]:
    """As many tests as may be asked about one function."""
    chosen, seconds = set(), 0.0
    for test in sorted(tests, key=lambda test: (state().duration_by_test[test], test)):
        seconds += state().duration_by_test[test]
        if chosen and seconds > limit_s:
            break
        chosen.add(test)
    return chosen


class SessionTests(TestRunner):
    """mutmut's test runner, on the items of the session at hand. Its methods run in children."""

    def __init__(self, session: pytest.Session) -> None:
        self.session = session
        self.slow_s: float = session.config.getoption("--mutants-slow")
        self.items = {item.nodeid: item for item in session.items}

    def run_all(self) -> dict[str, Any]:
        """Which test reaches which function, how long each takes, and which fail in the copy without any mutant."""
        reached: dict[str, list[str]] = {}
        seconds: dict[str, float] = {}
        failed = []
        worlds.take()
        os.chdir("mutants")
        self._set_up_anew()
        prove = [test for test in self.items if test.startswith(PROVE_SETTING_UP)]
        reached.update({function: [*prove] for function in state()._stats if function.startswith(SETTING_UP)})
        state()._stats.clear()
        items = list(self.items.values())
        for item, following in zip(items, [*items[1:], None], strict=True):
            failures = self.session.testsfailed
            began = time.monotonic()
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            seconds[item.nodeid] = time.monotonic() - began
            if self.session.testsfailed > failures:
                failed.append(item.nodeid)
            for function in state()._stats:
                reached.setdefault(function, []).append(item.nodeid)
            state()._stats.clear()
        worlds.leave()
        return {"reached": reached, "seconds": seconds, "failed": failed}

    def run_tests(self, *, tests: Iterable[str], **_mutant: str | None) -> int:
        """Run the tests to the first that fails: 1 then, 0 when all pass."""
        global _ends_at_failure
        _ends_at_failure = True
        os.chdir("mutants")
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.signal(signal.SIGPROF, lambda *_: end(TIMED_OUT))
        worlds.take()
        if get_mutant_under_test().startswith(SETTING_UP):
            self._set_up_anew()
        items = [self.items[test] for test in tests or self.items]
        for item, following in zip(items, [*items[1:], None], strict=True):
            signal.setitimer(signal.ITIMER_PROF, TEST_CPU_S)
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        end(0)
        return 0

    def _set_up_anew(self) -> None:
        try:
            with self.session.config.stash[blocking_manager_key].unblock():
                for module in LOADED:
                    importlib.reload(module)
                triggers.drop_all()
                call_command("flush", verbosity=0, interactive=False)
                worlds.let_go()
        except Exception:  # the mutant cannot even set a database up
            end(1)

    def run_forced_fail(self) -> int:
        """Any test that reaches a mutated function must fail now."""
        return self.run_tests(tests=[])

    def list_all_tests(self) -> ListAllTestsResult:
        """Every test of the session."""
        return ListAllTestsResult(ids=set(self.items))


class SessionRunner(ForkRunner):
    """mutmut's runner that forks a child for each mutant; also for all else that runs tests."""

    def __init__(self, session: pytest.Session, children: int) -> None:
        self.tests = SessionTests(session)
        super().__init__(max_workers=children, test_runner=self.tests)
        self.done, self.begun, self.said = 0, time.monotonic(), 0.0

    def collect_stats(self, _tests: Iterable[str] | None) -> int:
        """Let a child run everything once, and leave out what is slow or fails in the copy."""
        found = run_in_fork_with_result(self.tests.run_all)
        slow = {test for test, seconds in found["seconds"].items() if seconds > self.tests.slow_s}
        left_out = slow | set(found["failed"])
        state().duration_by_test.update({t: s for t, s in found["seconds"].items() if t not in left_out})
        for function, tests_of_it in found["reached"].items():
            chosen = quickest(set(tests_of_it) - left_out, REACH * self.tests.slow_s)
            state().tests_by_mangled_function_name[function] |= chosen
        took_s = sum(found["seconds"].values())
        say(f"{len(found['seconds'])} tests in {took_s:.0f} s, {len(slow)} of them too slow to be asked")
        for test in found["failed"]:
            say(f"not asked, it fails in the copy: {test}")
        return 0

    def run_clean_tests(self, **_tests: Iterable[str]) -> int:
        """The tests that will be asked, once more and in their new order, without a mutant."""
        asked = sorted(state().duration_by_test, key=state().duration_by_test.__getitem__)
        return run_in_fork(self.tests.run_tests, tests=asked)

    def run_forced_fail(self) -> int:
        """In a child: its failure must not end this process."""
        return run_in_fork(self.tests.run_forced_fail)

    def wait_for_result(self, timeout: float | None = None) -> MutantResult:
        """Also says how far it is."""
        result = super().wait_for_result(timeout)
        self.done += 1
        if (now := time.monotonic()) - self.said > SAY_EVERY_S:
            self.said = now
            say(f"{self.done} mutants in {now - self.begun:.0f} s, processor {sum(os.times()[2:4]):.0f} s")
        return result


def say(line: str) -> None:
    """Past mutmut's and pytest's capture."""
    print(line, file=sys.__stderr__, flush=True)
