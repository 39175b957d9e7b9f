"""Real processes on one database, killed at random while they work."""
