"""The form of a decision, as a browser sends it."""

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from queue_app.models import Plan
from tests.conftest import PASSWORD


def signed_in(user: User) -> Client:
    """A browser of this person."""
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def look(client: Client, plan: Plan, name: str = "redrive_decide") -> HttpResponse:
    """A page of the redrive."""
    return client.get(reverse(name, args=[plan.pk]))  # type: ignore[return-value]


def as_shown(page: HttpResponse) -> dict[str, Any]:
    """The form as the page filled it, with the ticket and the password."""
    form = page.context["form"]
    shown = {name: form[name].value() for name in ("digest", "round", "rate", "canary")}
    typed = str(page.context["d"].at_stake)
    return {**shown, "note": "CHG-1", "password": PASSWORD, "decision": "approve", "typed": typed}


def send(client: Client, plan: Plan, fields: dict[str, Any], **headers: str) -> HttpResponse:
    """Submit it."""
    return client.post(reverse("redrive_decide", args=[plan.pk]), fields, follow=not headers, headers=headers)  # type: ignore[return-value]
