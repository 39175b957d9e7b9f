"""The door to the engine: the names that others may rely on (DESIGN section 5)."""

from queue_app.policy.attempts import Lease, Result
from queue_app.policy.errors import (
    BadAck,
    Cancelled,
    Conflict,
    Held,
    InvalidNote,
    InvalidOrder,
    NotAllowed,
    NotDead,
    Permanent,
    QueueClosed,
    QueueFull,
    Retryable,
    UnknownJob,
)
from queue_app.services.acceptance import enqueue, enqueue_many
from queue_app.services.leases import (
    claim,
    finish,
    finish_and_claim,
    finish_many,
    release,
    release_many,
    renew,
    renew_many,
)
from queue_app.services.redrives import redrive
from queue_app.services.runs import run_once

__all__ = [
    "BadAck",
    "Cancelled",
    "Conflict",
    "Held",
    "InvalidNote",
    "InvalidOrder",
    "Lease",
    "NotAllowed",
    "NotDead",
    "Permanent",
    "QueueClosed",
    "QueueFull",
    "Result",
    "Retryable",
    "UnknownJob",
    "claim",
    "enqueue",
    "enqueue_many",
    "finish",
    "finish_and_claim",
    "finish_many",
    "redrive",
    "release",
    "release_many",
    "renew",
    "renew_many",
    "run_once",
]
