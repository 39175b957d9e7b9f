"""Who reads the page of a request. The service asks for the right and records a refusal; a view only calls it."""

from django.http import HttpRequest

from queue_app.services import reading
from queue_app.services.people import Actor


def reader_of(request: HttpRequest, right: str = "read") -> Actor:
    """The person, with the roles of this moment. Raises NotAllowed (recorded)."""
    match = request.resolver_match
    return reading.reader(request.user, match.url_name or "" if match else "", right=right)
