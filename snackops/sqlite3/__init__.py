"""Django's SQLite, except that a process which has lived in a database never makes a new one in its place."""
