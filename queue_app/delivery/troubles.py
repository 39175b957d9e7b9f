"""Short words for what a database refuses: they stand in logs and beside a process, and give nothing of the error away."""


def trouble_of(error: Exception) -> str:
    """disk_full, read_only, locked, damaged, or database_error."""
    text = str(error).lower()
    for part, word in (
        ("full", "disk_full"),
        ("no space", "disk_full"),
        ("readonly", "read_only"),
        ("read-only", "read_only"),
        ("locked", "locked"),
        ("malformed", "damaged"),
        ("not a database", "damaged"),
    ):
        if part in text:
            return word
    return "database_error"
