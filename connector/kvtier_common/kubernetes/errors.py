"""What an API server can answer, as errors whose type says whether trying again helps."""

from kvtier_common.errors import MomentaryError, PermanentError, RetryableError


class ServerError(MomentaryError):
    """The server failed (5xx), or asked to come back later (429).

    Attributes:
        retry_after_s: How long it asked to wait; None where it did not say.
    """

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)


class ConflictError(MomentaryError):
    """The object changed in between (409)."""


class ExpiredError(MomentaryError):
    """The resource version is too old to go on from (410): list again."""


class ForbiddenError(RetryableError):
    """Not allowed (401, 403): quota, admission or rights, which an administrator can change."""


class NotFoundError(PermanentError):
    """The object, or its whole kind, is not there (404)."""


class NamespaceTerminatingError(PermanentError):
    """The namespace is being deleted: nothing new can be made in it, ever."""


class InvalidObjectError(PermanentError):
    """The server refuses the object as it is (400, 422)."""
