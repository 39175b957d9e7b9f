"""Every sentence that a template, a view or a refusal can say stands in both catalogs, translated.

What stands there is complete, compiled and true to its placeholders: tests/views/test_frame_catalogs.py.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.utils.translation.template import templatize

from tests.views.test_frame_catalogs import entries

BASE = Path(settings.BASE_DIR)
PLAIN = {"_", "gettext", "gettext_lazy", "gettext_noop"}
PLURAL = {"ngettext", "ngettext_lazy"}
CONTEXT = {"pgettext", "pgettext_lazy"}


def said(tree: ast.AST) -> Iterator[str]:
    """Keys of the sentences that a piece of Python marks."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = (
            node.func.id
            if isinstance(node.func, ast.Name)
            else node.func.attr
            if isinstance(node.func, ast.Attribute)
            else ""
        )
        words = [part.value for part in node.args if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        if name in PLAIN | PLURAL and words:
            yield words[0]
        elif name in CONTEXT and len(words) == 2:
            yield f"{words[0]}\x04{words[1]}"


def in_template(text: str) -> Iterator[str]:
    """Keys of the sentences of a template, as Django itself hands them to the catalogs."""
    for call in re.findall(r"(?:^|\s)(n?p?gettext\(.*?\))(?=\s|$)", templatize(text), re.S):
        yield from said(
            ast.parse(call.replace("ngettext(u", "ngettext(").replace("gettext(u", "gettext("), mode="eval")
        )


def sources() -> Iterator[tuple[str, str]]:
    """(key, file) of all that is said anywhere."""
    for path in sorted((BASE / "queue_app").rglob("*.py")) + sorted((BASE / "snackops").rglob("*.py")):
        for key in said(ast.parse(path.read_text())):
            yield key, str(path.relative_to(BASE))
    for path in sorted((BASE / "templates").rglob("*.html")):
        for key in in_template(path.read_text()):
            yield key, str(path.relative_to(BASE))


def test_sentences_are_found_where_they_are_written() -> None:
    found = dict(sources())
    assert found["%(shown)s order matches"] == "templates/quarantine/_count.html"
    assert found["Put in quarantine"] == "queue_app/views/words.py"
    assert found["No order is selected."] == "queue_app/policy/selections.py"
    assert "navigation\x04Quarantine" in found
    assert len(found) > 500


@pytest.mark.parametrize("language", ["ja", "zh_Hans"])
def test_whatever_a_screen_says_stands_in_the_catalog(language: str) -> None:
    known = {key for key, _msgid, _plural, text in entries(language) if text}
    assert sorted({(key, file) for key, file in sources() if key not in known}) == []
