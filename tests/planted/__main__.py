"""`python -m tests.planted`: plant every mistake, or those chosen by name, in a copy of the product, and see who dies."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.planted.mistake import Mistake
from tests.planted.mistakes import MISTAKES

BASE_DIR = Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "node_modules", "static", "templates")
LIMIT_S = 300  # of one mistake's tests; all of them together, without any mistake, may take thrice as long
EPILOG = """
On SQLite each processor plants in a copy of its own; with DATABASE_URL set, one after the other.

exit status: 0 every mistake was noticed; 1 one was not, or a test fails without any mistake, or an old
text is no longer found; 2 wrong usage
"""
_FAILED = re.compile(r"^FAILED (\S+?)(?:\[| - |$)", re.MULTILINE)


def place(mistake: Mistake, base: Path) -> str:
    """The file's text with the mistake in it. Raises ValueError unless the old text stands there exactly once."""
    text = (base / mistake.file).read_text()
    if (found := text.count(mistake.old)) != 1:
        raise ValueError(f"{mistake.name}: the old text stands {found} times in {mistake.file}")
    return text.replace(mistake.old, mistake.new)


def failing(tests: Iterable[str], copy: Path, limit_s: float = LIMIT_S) -> set[str]:
    """Which of the tests fail in the copy. Raises RuntimeError when the run itself breaks, which proves nothing."""
    # no byte code: a file planted and healed within one second would pass for the one that is cached
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["-q", "-rf", "--tb=no", "--nomigrations", "-p", "no:cacheprovider", "-p", "tests.planted.hurry"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=copy, env=environ, capture_output=True, text=True, timeout=limit_s, check=False,
    )  # fmt: skip
    if run.returncode not in (0, 1):
        raise RuntimeError(f"pytest ended with {run.returncode}\n{run.stdout[-1500:]}{run.stderr[-500:]}")
    return set(_FAILED.findall(run.stdout))


def judge(mistake: Mistake, copy: Path) -> tuple[bool, str]:
    """Whether each named test died, and the line that says so."""
    target = copy / mistake.file
    healthy = target.read_text()
    try:
        target.write_text(place(mistake, copy))
        dead = failing(mistake.tests, copy)
        if missed := [test for test in mistake.tests if test not in dead]:
            dead |= failing(missed, copy)  # a random walk may pass a mistake by once; one that does so twice is blind
    except (ValueError, RuntimeError, subprocess.TimeoutExpired) as trouble:
        return False, f"NOT TRIED: {trouble}"
    finally:
        target.write_text(healthy)
    survivors = [test for test in mistake.tests if test not in dead]
    if survivors:
        return False, "SURVIVED " + ", ".join(survivors)
    return True, "killed by " + ", ".join(test.split("::test_")[1].replace("_", " ") for test in mistake.tests)


def main(arguments: Sequence[str] | None = None) -> int:
    """Plant what the arguments choose, or only name it; the exit status as EPILOG says."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.planted",
        description="Plant each mistake in a copy of the product and run the tests that must notice it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="mistakes whose name has this in it (default: all)")
    parser.add_argument("--list", action="store_true", help="print their names, and plant nothing")
    given = parser.parse_args(arguments)
    chosen = [m for m in MISTAKES if not given.names or any(name in m.name for name in given.names)]
    if strange := [name for name in given.names if not any(name in m.name for m in MISTAKES)]:
        parser.error(f"No mistake has {', '.join(map(repr, strange))} in its name; --list shows them.")
    if given.list:
        print(*(mistake.name for mistake in chosen), sep="\n")
        return 0
    return plant(chosen)


def plant(chosen: Sequence[Mistake]) -> int:
    """Print the table; the number of copies is the number of processors, on PostgreSQL one."""
    workers = 1 if os.environ.get("DATABASE_URL") else os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            copies.put(Path(shutil.copytree(BASE_DIR, Path(folder) / str(number), ignore=LEFT_OUT)))
        ill = failing(sorted({test for mistake in chosen for test in mistake.tests}), Path(folder) / "0", 3 * LIMIT_S)
        if ill:
            print("Without any mistake these tests fail already:", *sorted(ill), sep="\n  ")
            return 1

        def work(mistake: Mistake) -> tuple[bool, str]:
            copy = copies.get()
            try:
                return judge(mistake, copy)
            finally:
                copies.put(copy)

        survived = 0
        with ThreadPoolExecutor(workers) as pool:
            for mistake, (died, line) in zip(chosen, pool.map(work, chosen), strict=True):
                survived += not died
                print(f"{mistake.name}: {line}", flush=True)
    print(f"{len(chosen)} mistakes planted, {len(chosen) - survived} noticed, {survived} not.")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
