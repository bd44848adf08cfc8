"""Why a request is not sent to a pod: one class a status that the client gets."""

from typing import ClassVar


class RefusedRequestError(Exception):
    """A request that gets an answer of the picker's own; the message is for its client."""

    status: ClassVar[int] = 500  # HTTP status of the answer
    # seconds after which sending it again may help; None where nobody can say
    retry_after_s: ClassVar[int | None] = None


class BadRequestError(RefusedRequestError):
    """The body is not a request that the engines understand. Sending it again does not help."""

    status = 400


class BadFieldError(BadRequestError):
    """A field of the body is missing or of a wrong type."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field  # its path, such as `messages[2].content`


class UnknownApiError(RefusedRequestError):
    """Nothing that the picker reads is served under this path. Sending it again does not help."""

    status = 404


class TooLargeError(RefusedRequestError):
    """The body is larger than the picker takes."""

    status = 413


class SaturatedError(RefusedRequestError):
    """Every pod is saturated. Sending it again later may help."""

    status = 429
    retry_after_s = 1
    """Some pod may be free again after a few scrapes of metrics; whole seconds are all there are."""


class NoEndpointError(RefusedRequestError):
    """No pod is ready, or none of the subset is. Sending it again later may help."""

    status = 503


class BudgetSpentError(RefusedRequestError):
    """The picker holds as many bodies as it has memory for. Sending it again later may help."""

    status = 503
    retry_after_s = 1


class InternalError(RefusedRequestError):
    """A fault of the picker's own, which its log tells of."""

    def __init__(self) -> None:
        super().__init__("internal error of the picker; its log says more")
