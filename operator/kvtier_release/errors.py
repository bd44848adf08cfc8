"""What keeps a release from being made or published."""

from kvtier_common.errors import PermanentError


class ReleaseError(PermanentError):
    """The message says in one line what is wrong and what to do."""
