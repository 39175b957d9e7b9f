"""Health for programs."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe


@login_not_required
@require_safe
def livez(_request: HttpRequest) -> HttpResponse:
    """200 while this process answers; it asks nothing else."""
    return HttpResponse("ok\n", content_type="text/plain")
