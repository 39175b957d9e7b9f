"""An export on its way to a browser."""

from django.http import StreamingHttpResponse

from queue_app.services.exports import Export


def answer(made: Export) -> StreamingHttpResponse:
    """The file as an attachment, sent bite by bite: the middleware compresses each one as it comes."""
    return StreamingHttpResponse(
        made.chunks,
        content_type=made.content_type,
        headers={"Content-Disposition": f'attachment; filename="{made.file_name}"', "X-Accel-Buffering": "no"},
    )
