"""What goes wrong in a round, beside what the API server answers."""

from kvtier_common.errors import MomentaryError


class UnseenError(MomentaryError):
    """What a round needs to know can no longer be seen; an API server that starts says so for a moment."""
