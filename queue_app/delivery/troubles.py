"""Short words for what a database refuses: they stand in logs and beside a process, and give nothing of the error away."""


def trouble_of(error: Exception) -> str:
    """disk_full, read_only, locked, damaged, unreachable (the connection is lost or none is made), or database_error."""
    text = str(error).lower()
    for part, word in (
        ("full", "disk_full"),
        ("no space", "disk_full"),
        ("readonly", "read_only"),
        ("read-only", "read_only"),
        ("locked", "locked"),
        ("malformed", "damaged"),
        ("not a database", "damaged"),
        ("connection", "unreachable"),  # refused, timed out, closed, reset, terminated: every driver says this word
        ("host name", "unreachable"),
        ("eof detected", "unreachable"),
        ("database system is", "unreachable"),  # starting up, shutting down, in recovery
        ("unable to open", "unreachable"),
    ):
        if part in text:
            return word
    return "database_error"
