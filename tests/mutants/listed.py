"""The survivors that are known, each with the reason why no test kills it: `survivors/*.toml`.

A mutant is named by its function and by its change, the lines taken away and those put in their place, because mutmut's
numbers move when a function changes. The change "*" stands for every mutant of a function. `rules.toml` holds kinds of
changes, as patterns, that nothing can notice wherever they are made.
"""

import functools
import re
import tomllib
from contextlib import chdir
from pathlib import Path

FOLDER = Path(__file__).with_name("survivors")


@functools.cache
def survivors() -> dict[str, dict[str, str]]:
    """Function ("store.jobs.finish", "policy.plans.InvalidPlan.__init__") -> change -> reason."""
    known: dict[str, dict[str, str]] = {}
    for file in sorted(FOLDER.glob("*.toml")):
        for group in tomllib.loads(file.read_text()).get("group", []):
            for function, changes in group["changes"].items():
                known.setdefault(function, {}).update(dict.fromkeys(changes, group["reason"]))
    return known


@functools.cache
def rules() -> list[tuple[re.Pattern[str], bool, str]]:
    """(pattern of the change, whether of a change of case only and then of the old text, reason)."""
    found = tomllib.loads((FOLDER / "rules.toml").read_text())["rule"]
    return [(re.compile(rule["pattern"]), rule.get("case_only", False), rule["reason"]) for rule in found]


def reason(function: str, change: str) -> str:
    """Why it may survive; empty when nobody listed it."""
    known = survivors().get(function, {})
    return known.get(change) or known.get("*", "") or _by_rule(change)


def _by_rule(change: str) -> str:
    old, _, new = change.partition(" => ")
    case_only = old.casefold() == new.casefold()
    fit = (
        why for wanted, case, why in rules() if (case_only and wanted.search(old) if case else wanted.search(change))
    )
    return next(fit, "")


def function_of(name: str) -> str:
    """The function of one of mutmut's mutants, with its class ("store.jobs.finish", "policy.plans.InvalidPlan.__init__")."""
    from mutmut.utils.format_utils import get_module_from_key, orig_function_and_class_names_from_key

    function, owner = orig_function_and_class_names_from_key(name)
    return ".".join(filter(None, [get_module_from_key(name).removeprefix("queue_app."), owner, function]))


def described(base: Path, name: str) -> tuple[str, str]:
    """Function and change of one of mutmut's mutants in the copy at `base`."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant
    from mutmut.utils.format_utils import get_module_from_key

    path = Path(*get_module_from_key(name).split(".")).with_suffix(".py")
    with chdir(base):
        diff = get_diff_for_mutant(name, path=path).splitlines()[2:]
    old, new = (" ".join(line[1:].strip() for line in diff if line.startswith(sign)) for sign in "-+")
    return function_of(name), f"{old} => {new}"
