"""Which changes of the code do the tests notice? `python -m tests.mutants WHAT ... [--sample PERCENT] [--tests PATH ...]`

WHAT is a package (policy, store, services), a module (store.jobs) or a function (store.jobs.finish). mutmut changes one
thing at a time in a copy, each change is a mutant, and the tests that reach the changed function are asked. Survivors that
`survivors/` lists with a reason are counted apart. Exit status 1 if another one survives. Needs the dependency group
`mutants`.

On SQLite a package is what SQLite runs. `python -m tests.pgserver python -m tests.mutants ...` tries on PostgreSQL, where
a package is what PostgreSQL runs; a module that is named is tried in any case.
"""

import argparse
import fnmatch
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from contextlib import chdir
from pathlib import Path

from tests.mutants import breeding, listed

# Tests of the package's own room and of those that use it. A module that others prove (backups) is tried with --tests.
TESTS = {
    "policy": ["policy", "exports", "audit", "reads", "intake", "reconciling", "services", "growth"],
    "store": ["store", "services", "redrive", "engine", "audit", "intake", "growth"],
    "services": ["services", "redrive", "engine", "audit", "exports", "intake", "growth", "reconciling"],
}
# real processes and long searches: a mutant would wait for them, and each of them has a quicker neighbour
LEFT_OUT = ["*/test_*kills*.py", "*_process*.py", "*/test_*command*.py", "*/test_*races.py", "*/test_model.py"]
LEFT_OUT += ["*/test_long_lives.py", "*/test_database_file.py", "*/test_upgrade.py", "*/test_fairness.py"]
LEFT_OUT += ["*/test_redriver.py", "*/test_barriers.py", "*/test_locks.py", "*/test_stories.py"]
MUTANTS, KILLED, TIMED_OUT, LISTED = "mutants", "killed", "timed out", "listed"
SURVIVED, NOT_REACHED = "survived", "not reached"
WORDS = {"survived": SURVIVED, "no tests": NOT_REACHED, "timeout": TIMED_OUT}  # all else of mutmut's died of the mutant


def main() -> int:
    """Run, print the table and what survived."""
    chosen = arguments()
    named = [one for what in chosen.what for one in ([what] if "." in what else all_of(what))]
    modules = list(dict.fromkeys(".".join(what.split(".")[:2]) for what in named))
    room = Path("/dev/shm") if Path("/dev/shm").is_dir() else None  # noqa: S108 - memory: a commit costs no disk there
    with tempfile.TemporaryDirectory(prefix="mutants-", dir=room) as folder:
        base = Path(folder)
        base.chmod(0o755)  # PostgreSQL's programs run as somebody else
        breeding.make_copy(base, modules)
        quietly([sys.executable, "-m", "tests.mutants.breeding"], base)
        names = sampled(base, set(named), chosen.sample, chosen.seed)
        tests = chosen.tests or chosen_tests(sorted({module.split(".")[0] for module in modules}))
        try_them(base, names, tests, chosen)
        return report(base, modules)


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("what", nargs="*", default=list(breeding.PACKAGES), help="package[.module[.function]]")
    parser.add_argument("--sample", type=int, default=100, help="percent of each module's mutants, drawn by chance")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tests", nargs="+", help="test files to ask instead of the usual ones")
    parser.add_argument("--slow", type=float, default=1.5, help="seconds: a test that takes longer is not asked")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


def all_of(package: str) -> list[str]:
    """The package's modules that the database at hand runs, as `store.jobs`."""
    elsewhere = breeding.ONLY["sqlite" if os.environ.get("DATABASE_URL", "").startswith("postgres") else "postgresql"]
    return [f"{package}.{name}" for name in breeding.modules_of(package) if name not in elsewhere]


def chosen_tests(packages: list[str]) -> list[str]:
    """The files of tests that are asked about the packages."""
    rooms = sorted({room for package in packages for room in TESTS[package]})
    files = [path for room in rooms for path in sorted(Path("tests", room).glob("test_*.py"))]
    return [str(file) for file in files if not any(fnmatch.fnmatch(str(file), pattern) for pattern in LEFT_OUT)]


def quietly(command: list[str], base: Path) -> None:
    """Run in the copy; what mutmut prints of its progress is kept in a file beside it. Raises CalledProcessError."""
    environ = {**os.environ, "TMPDIR": str(base), "PYTHONHASHSEED": "0"}
    with (base / "output.txt").open("a") as output:
        done = subprocess.run(command, cwd=base, env=environ, stdout=output, check=False)
    if done.returncode:
        sys.exit((base / "output.txt").read_text()[-3000:])


def mutants_of(base: Path, module: str) -> dict[str, int | None]:
    """mutmut's exit code of each mutant of a module; None: not tried."""
    from mutmut.mutation.data import SourceFileMutationData

    with chdir(base):
        data = SourceFileMutationData(path=Path("queue_app", *module.split(".")).with_suffix(".py"))
        data.load()
    return data.exit_code_by_key


def sampled(base: Path, named: set[str], percent: int, seed: int) -> Path | None:
    """A file with the names of the mutants drawn of these modules and functions, at least one of each module; None when
    all are tried."""
    if percent >= 100 and all(what.count(".") == 1 for what in named):
        return None
    luck = random.Random(seed)
    drawn = []
    for meta in sorted((base / "mutants/queue_app").glob("*/*.meta")):
        module = f"{meta.parent.name}.{meta.name.split('.')[0]}"
        names = [name for name in sorted(mutants_of(base, module)) if {module, listed.function_of(name)} & named]
        drawn += luck.sample(names, max(1, len(names) * percent // 100)) if names else []
    file = base / "drawn.txt"
    file.write_text("\n".join(drawn))
    return file


def try_them(base: Path, names: Path | None, tests: list[str], chosen: argparse.Namespace) -> None:
    """Let mutmut try the mutants inside one session of pytest."""
    options = ["-s", "-q", "-p", "no:cacheprovider", "-p", "tests.mutants.session", "--rootdir=.", "--timeout=60"]
    options += [f"--mutants-jobs={chosen.jobs}", f"--mutants-slow={chosen.slow}"]
    options += [f"--mutants-file={names}"] if names else []
    command = [sys.executable, "-m", "pytest", *options, *tests]
    with (base / "output.txt").open("a") as output:
        environ = {**os.environ, "TMPDIR": str(base), "PYTHONHASHSEED": "0"}
        done = subprocess.run(command, cwd=base / "mutants", env=environ, stdout=output, check=False)
    if done.returncode:
        sys.exit((base / "output.txt").read_text()[-3000:])


def report(base: Path, modules: list[str]) -> int:
    """Print the table and the survivors that nobody listed; 1 if there are any."""
    columns = [MUTANTS, KILLED, TIMED_OUT, SURVIVED, NOT_REACHED, LISTED]
    print("".join([f"{'module':<30}", *(f"{column:>13}" for column in columns), f"{'killed %':>10}"]))
    total: Counter[str] = Counter()
    strangers: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        row = count(base, module, strangers)
        total += row
        print(line(module, row, columns))
    print(line("all", total, columns))
    for function, changes in sorted(strangers.items()):
        print(
            f"{json.dumps(function)} = [", *(f"    {json.dumps(change)}," for change in sorted(changes)), "]", sep="\n"
        )
    return 1 if strangers else 0


def line(name: str, row: Counter[str], columns: list[str]) -> str:
    """One row of the table; a mutant that makes a test run out of its time is noticed as well."""
    share = f"{100 * (row[KILLED] + row[TIMED_OUT]) / row[MUTANTS]:.1f}" if row[MUTANTS] else "none"
    return "".join([f"{name:<30}", *(f"{row[column]:>13}" for column in columns), f"{share:>10}"])


def count(base: Path, module: str, strangers: dict[str, list[str]]) -> Counter[str]:
    """How the module's mutants ended; those that nobody listed are added to `strangers`, by function."""
    from mutmut.stats import status_by_exit_code

    row: Counter[str] = Counter()
    for name, code in mutants_of(base, module).items():
        if code is None:
            continue
        word = WORDS.get(status_by_exit_code[code], KILLED)
        row[MUTANTS] += 1
        row[word] += 1
        if word in (SURVIVED, NOT_REACHED):
            function, change = listed.described(base, name)
            if listed.reason(function, change):
                row[LISTED] += 1
            else:
                strangers[function].append(change)
    return row


if __name__ == "__main__":
    sys.exit(main())
