"""The whole product in one process, on a clock that is set and with faults that are drawn: same seed, same life."""
