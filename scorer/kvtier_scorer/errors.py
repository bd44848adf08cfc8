"""Why a request is not sent to a pod: one class a status that the client gets."""

from typing import ClassVar


class RefusedRequestError(Exception):
    """A request that gets an answer of the picker's own; the message is for its client.

    Attributes:
        status: HTTP status of the answer.
    """

    status: ClassVar[int] = 500


class BadRequestError(RefusedRequestError):
    """The body is not a request that the engines understand. Sending it again does not help."""

    status = 400


class TooLargeError(RefusedRequestError):
    """The body is larger than the picker takes."""

    status = 413


class SaturatedError(RefusedRequestError):
    """Every pod is saturated. Sending it again later may help."""

    status = 429


class NoEndpointError(RefusedRequestError):
    """No pod is ready, or none of the subset is. Sending it again later may help."""

    status = 503
