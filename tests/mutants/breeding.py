"""A copy of the repository in which mutmut can breed mutants, and the breeding itself.

mutmut leaves decorated functions out (all but static and class methods). Here that would be every service that begins
anew after a conflict, every property and every context manager; so the copy says `f = decorator(f)` below the function
instead, which means the same.
"""

import ast
import shutil
import subprocess
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parents[2]
PACKAGES = ("policy", "store", "services")
# what one database alone runs, and the move between them
ONLY = {
    "sqlite": ("triggers_sqlite",),
    "postgresql": (
        "backups_postgresql", "triggers_counting", "triggers_postgresql", "tuning", "volleys", "copies", "moving",
    ),
}  # fmt: skip
UNTOUCHED = {"staticmethod", "classmethod"}
_CONFIG = """
[tool.mutmut]
source_paths = ["queue_app"]
only_mutate = [{only}]
also_copy = ["manage.py", "snackops", "templates", "static", "README.md", ".gitignore", ".ci"]
timeout_constant = 4.0
timeout_multiplier = 8.0
track_dependencies = false
use_git_change_detection = false
"""


def modules_of(package: str) -> list[str]:
    """Names of the package's modules."""
    found = sorted(path.stem for path in (BASE_DIR / "queue_app" / package).glob("*.py"))
    return [name for name in found if name != "__init__"]


def make_copy(base: Path, modules: list[str]) -> None:
    """Copy the tracked and the new files to `base`, undecorated in the `modules` ("store.jobs"), with mutmut's settings."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=BASE_DIR, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (source := BASE_DIR / name).is_file():
            (base / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, base / name)
    files = ["queue_app/" + module.replace(".", "/") + ".py" for module in modules]
    for file in files:
        (base / file).write_text(undecorated((base / file).read_text()))
    with (base / "pyproject.toml").open("a") as settings:
        settings.write(_CONFIG.format(only=", ".join(f'"{file}"' for file in files)))


def undecorated(source: str) -> str:
    """The same module with each decorator of a function or method written as a call below it."""
    lines = source.splitlines()
    for function in reversed(_decorated(ast.parse(source))):
        calls = function.name
        for decorator in reversed(function.decorator_list):
            calls = f"{ast.unparse(decorator)}({calls})"
        indent = " " * function.col_offset
        lines.insert(function.end_lineno, f"{indent}{function.name} = {calls}")
        del lines[function.decorator_list[0].lineno - 1 : function.lineno - 1]
    return "\n".join(lines) + "\n"


def _decorated(module: ast.Module) -> list[ast.FunctionDef]:
    bodies = [module.body, *(node.body for node in module.body if isinstance(node, ast.ClassDef))]
    functions = [node for body in bodies for node in body if isinstance(node, ast.FunctionDef) and node.decorator_list]
    functions = [function for function in functions if ast.unparse(function.decorator_list[0]) not in UNTOUCHED]
    return sorted(functions, key=lambda function: function.lineno)


def breed() -> None:
    """Write the mutants of the current folder to `mutants/` in it, as `mutmut run` begins."""
    from mutmut.__main__ import copy_also_copy_files, copy_src_dir, create_mutants

    Path("mutants").mkdir()
    copy_src_dir()
    copy_also_copy_files()
    create_mutants(2)


if __name__ == "__main__":
    breed()
