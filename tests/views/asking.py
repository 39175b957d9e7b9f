"""The form that asks for a redrive, as a browser sends it."""

import re
from typing import Any

from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

KEY = "k" * 32
GROUP = {"queue": "snacks", "reason": "permanent", "code": "http_503"}


def look(page: Client, **query: Any) -> HttpResponse:
    """The form with its figures."""
    return page.get(reverse("redrive_new"), query)  # type: ignore[return-value]


def ask(page: Client, **fields: Any) -> HttpResponse:
    """Submit it, with what differs from the usual; None leaves a field out."""
    given = {"queue": "snacks", "note": "INC-1", "form_key": KEY, "preset": "normal"} | fields
    return page.post(reverse("redrive_new"), {name: value for name, value in given.items() if value is not None})  # type: ignore[return-value]


def said(answer: HttpResponse) -> str:
    """The words of a page."""
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))
    return text.replace("&#x27;", "'").replace("&quot;", '"').replace(" ,", ",")


def sql(text: str, *values: Any) -> list[tuple[Any, ...]]:
    """All rows of a query."""
    with connection.cursor() as cursor:
        cursor.execute(text, values)
        return cursor.fetchall()
