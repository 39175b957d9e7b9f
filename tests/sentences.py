"""How a refusal speaks, looked at in every test: one sentence, with all its values in it.

A slip of the pen in any refusal is noticed wherever a test makes somebody refuse.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from queue_app.policy.errors import SnackOpsError

SENTENCE = re.compile(
    r"[A-Z%/].*[a-z].*\.", re.DOTALL
)  # begins like one (or with a path), is not shouted, has its full stop
PLACE = re.compile(r"%\((\w+)\)")


def check(template: str, values: dict[str, Any], *, about_none: bool) -> None:
    """Raises AssertionError when it is no sentence, lacks a value, or speaks of None where nobody gave that."""
    assert SENTENCE.fullmatch(template), f"no sentence: {template}"
    assert set(PLACE.findall(template)) <= set(values), f"a value is missing: {template}"
    assert None not in values.values(), f"a value is None: {template} {values}"
    assert about_none or "None" not in values.values(), f"a value is shown as None: {template} {values}"


@pytest.fixture(autouse=True)
def refusals_are_sentences(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every refusal of the test is looked at, also one that the product turns into something else."""
    from queue_app.services.intake import SourceBroken  # needs Django's apps

    begin = SnackOpsError.__init__
    faults: list[str] = []

    def begin_and_look(self: SnackOpsError, template: str = "", **values: Any) -> None:
        try:
            if not isinstance(self, SourceBroken):  # a part of the sentence of IntakeStopped
                check(template, values, about_none="None" in request.node.name)
        except AssertionError as fault:
            faults.append(str(fault))
        begin(self, template, **values)

    monkeypatch.setattr(SnackOpsError, "__init__", begin_and_look)
    yield faults
    if faults:
        pytest.fail("\n".join(faults))
