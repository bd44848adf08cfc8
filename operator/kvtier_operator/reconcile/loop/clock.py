"""The time, as a status has it."""

from datetime import UTC, datetime


class Clock:
    """The machine's clock."""

    def now(self) -> str:
        """The time in UTC as Kubernetes writes it (RFC 3339, whole seconds)."""
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
