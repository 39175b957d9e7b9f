"""What a person sees on a page: figures, rows and links, read from its markup."""

import csv
import html
import io
import re

from django.test import Client
from django.urls import reverse

ROW = re.compile(r'data-keys-open href="/orders/([^/"]+)/')


def text_of(markup: str) -> str:
    """The words of a page, without markup, blanks made one."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def rows_of(markup: str) -> list[str]:
    """The ids of the rows of a list, in its order."""
    return ROW.findall(markup)


def link_of(markup: str, rel: str) -> str | None:
    """The address behind the next or previous page, or None."""
    found = re.search(rf'rel="{rel}" href="([^"]+)"', markup)
    return html.unescape(found[1]) if found else None


def matching(markup: str) -> int:
    """How many orders match, as the list says it."""
    found = re.search(r"<strong>([\d,]+) orders? match", markup)
    assert found, text_of(markup)[:400]
    return int(found[1].replace(",", ""))


def exported(client: Client, query: list[tuple[str, str]]) -> list[str]:
    """The ids of the file that the filter's form gives."""
    answer = client.post(reverse("quarantine_export"), {**dict(query), "format": "csv"})
    assert answer.status_code == 200
    lines = list(csv.reader(io.StringIO(b"".join(answer.streaming_content).decode("utf-8-sig"))))  # type: ignore[attr-defined,arg-type]
    body = [line for line in lines if not line[0].startswith("# ")]
    return [line[0].removeprefix("'") for line in body[1:]]
