"""The catalogs: complete, compiled as they stand, and true to their placeholders."""

import ast
import gettext
import re
from pathlib import Path

import pytest
from django.conf import settings

LOCALE = Path(settings.BASE_DIR, "snackops", "locale")
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%[sd%]")


def entries(language: str) -> list[tuple[str, str, str, str]]:
    """Each entry of a .po file: key of the compiled file, msgid, plural or '', translation."""
    found = []
    for block in (LOCALE / language / "LC_MESSAGES" / "django.po").read_text().split("\n\n"):
        part = {
            key: "".join(ast.literal_eval(line) for line in re.findall(r'".*"', lines))
            for key, lines in re.findall(r'^(msg\w+(?:\[0\])?) ((?:".*"\n?)+)', block, re.MULTILINE)
        }
        if part.get("msgid"):
            key = f"{part['msgctxt']}\x04{part['msgid']}" if "msgctxt" in part else part["msgid"]
            text = part.get("msgstr", part.get("msgstr[0]", ""))
            found.append((key, part["msgid"], part.get("msgid_plural", ""), text))
            assert "fuzzy" not in block, part["msgid"]
    return found


@pytest.mark.parametrize("language", ["ja", "zh_Hans"])
def test_nothing_is_left_untranslated(language: str) -> None:
    assert len(entries(language)) > 100
    assert [msgid for _key, msgid, _plural, text in entries(language) if not text] == []


@pytest.mark.parametrize("language", ["ja", "zh_Hans"])
def test_the_compiled_catalog_is_the_written_one(language: str) -> None:
    with (LOCALE / language / "LC_MESSAGES" / "django.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    for key, msgid, plural, text in entries(language):
        assert compiled.get((key, 0) if plural else key) == text, msgid


@pytest.mark.parametrize("language", ["ja", "zh_Hans"])
def test_a_translation_names_the_same_values(language: str) -> None:
    for _key, msgid, plural, text in entries(language):
        assert sorted(PLACEHOLDER.findall(text)) == sorted(PLACEHOLDER.findall(plural or msgid)), msgid
