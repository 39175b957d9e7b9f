"""What may stand in an address: anything of another shape is no address at all (404)."""


class JobId:
    """The id of a job (DESIGN section 3)."""

    regex = r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}"

    def to_python(self, value: str) -> str:
        """As it stands."""
        return value

    def to_url(self, value: str) -> str:
        """As it stands."""
        return value


class QueueName(JobId):
    """The name of a queue."""

    regex = r"[a-z0-9][a-z0-9_-]{0,31}"


class Small:
    """A positive whole number of at most 18 ASCII digits, so that every database takes it."""

    regex = r"[1-9][0-9]{0,17}"

    def to_python(self, value: str) -> int:
        """The number."""
        return int(value)

    def to_url(self, value: int) -> str:
        """The number in plain digits, whatever the language."""
        return str(int(value))
