"""What an API server can answer, as errors whose type says whether trying again helps."""

from kvtier_operator.errors import PermanentError, RetryableError


class MomentaryError(RetryableError):
    """Nothing has to change for the next try to succeed; the other retryable errors wait for somebody."""


class UnreachableError(MomentaryError):
    """No answer: refused, reset, timed out, or something that is not an API server's answer."""


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


class UnseenError(MomentaryError):
    """What a round needs to know can no longer be seen; an API server that starts says so for a moment."""


class ForbiddenError(RetryableError):
    """Not allowed (401, 403): quota, admission or rights, which an administrator can change."""


class NotFoundError(PermanentError):
    """The object, or its whole kind, is not there (404)."""


class TooLargeError(RetryableError):
    """An answer has more bytes than were asked for: ask for less at a time."""


class NamespaceTerminatingError(PermanentError):
    """The namespace is being deleted: nothing new can be made in it, ever."""


class InvalidObjectError(PermanentError):
    """The server refuses the object as it is (400, 422)."""
