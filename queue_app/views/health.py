"""Health for programs: nothing here needs a sign-in, and nothing here tells more than a word."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from queue_app.services import readiness


@login_not_required
@require_safe
def livez(_request: HttpRequest) -> HttpResponse:
    """200 while this process answers; it asks nothing else."""
    return HttpResponse("ok\n", content_type="text/plain")


@login_not_required
@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """200 when the database answers, migrations are applied and triggers stand; else 503 and a word for each lack."""
    lacks = readiness.lacks()
    if not lacks:
        return HttpResponse("ok\n", content_type="text/plain")
    return HttpResponse("".join(f"{lack}\n" for lack in lacks), content_type="text/plain", status=503)
