"""The life of a plan and its batch: which state may follow which."""

OPEN = ("freezing", "proposed", "approved", "running", "paused", "halted")
CLOSED = ("ended", "stopped", "rejected", "withdrawn", "expired", "cancelled")
