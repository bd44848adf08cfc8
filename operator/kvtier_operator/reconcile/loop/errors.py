"""Errors of a reconciliation that the API server did not answer with."""

from kvtier_common.errors import MomentaryError


class LostWatchError(MomentaryError):
    """The operator may no longer list what a plan needs; an API server says so too while it starts."""
