"""The living part of a page, for polling."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def living(request: HttpRequest, folder: str, context: dict[str, Any]) -> HttpResponse:
    """`folder/_live.html`, or `folder/_unchanged.html` (the as-of line alone) while the picture that the address has `seen`
    is still that of the context."""
    if request.GET.get("seen") == context["seen"]:
        response = render(request, f"{folder}/_unchanged.html", context)
        response["HX-Reswap"] = "none"
        return response
    return render(request, f"{folder}/_live.html", context)
