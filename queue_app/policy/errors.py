"""The product's typed answers that are not results: what a caller may catch (DESIGN section 5).

Each message is one sentence for a person and never holds a payload, a secret or a raw error text.
"""


def gettext_noop(text: str) -> str:
    """Marks a sentence for the catalogs and returns it as it is: the pages translate it, the command line does not."""
    return text


class SnackOpsError(Exception):
    """Base of every error that the product raises on purpose: one sentence, kept as template and values.

    `str(error)` is the English sentence. A page shows `gettext(error.template) % error.values`, so a sentence that
    people see on screens is written `NotAllowed(gettext_noop("Only %(who)s may do this."), who=...)`.
    """

    def __init__(self, template: str, **values: object) -> None:
        super().__init__(template % values if values else template)
        self.template = template
        self.values = values


class InvalidOrder(SnackOpsError, ValueError):
    """An order that can never be accepted as it stands: bad id, quantity, payload, queue or limit."""


class InvalidNote(SnackOpsError, ValueError):
    """A note that is not `[A-Za-z0-9][A-Za-z0-9._:/-]{0,63}`."""


class Conflict(SnackOpsError):
    """The id is known with another body (queue, quantity, payload or order_key)."""


class UnknownJob(SnackOpsError, LookupError):
    """No job has this id."""


class NotDead(SnackOpsError):
    """Only a dead job can be redriven, and this one is not dead (any more)."""


class NotAllowed(SnackOpsError):
    """The person may not do this; the message says why."""


class Held(SnackOpsError):
    """The job is held by another open plan, which the message names."""


class QueueFull(SnackOpsError):
    """The queue holds as many unfinished orders as its policy admits."""


class QueueClosed(SnackOpsError):
    """The queue does not accept orders now."""


class Retryable(Exception):
    """A delivery that may succeed later.

    `code` is a short cause such as `http_503`; `retry_after_ms` is the receiver's own wish, already bounded.
    """

    def __init__(self, code: str, retry_after_ms: int | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.retry_after_ms = retry_after_ms


class Permanent(Exception):
    """A delivery that the receiver refused for good; `code` says how (`http_422`)."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Cancelled(Exception):
    """The delivery was not started; the job goes back without its attempt being spent."""


class BadAck(Exception):
    """An answer that is neither success nor a failure the receiver owns up to: the outcome is unknown.

    `code` names the kind (`bad_ack`, `wrong_id`, `http_404`), never the body.
    """

    def __init__(self, code: str = "bad_ack") -> None:
        super().__init__(code)
        self.code = code
