"""What ends a stream, or a request, because of the gateway and not of its client."""

from typing import ClassVar

from kvtier_scorer.errors import RefusedRequestError


class ProtocolError(Exception):
    """The gateway sent what does not make sense here; the stream ends with INVALID_ARGUMENT."""


class GatewayMisconfiguredError(RefusedRequestError):
    """The gateway is configured in a way in which prompts cannot be seen. Its operator has to change that."""

    status: ClassVar[int] = 500
