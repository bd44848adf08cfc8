"""Errors in the shape that clients of OpenAI's API read."""

from typing import Final

import orjson

from kvtier_scorer.errors import BadFieldError, RefusedRequestError

_TYPES: Final = {
    400: "invalid_request_error",
    404: "invalid_request_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
    503: "service_unavailable_error",
}


def error_body(refused: RefusedRequestError) -> bytes:
    """The JSON body of a refusal."""
    return orjson.dumps(
        {
            "error": {
                "message": str(refused),
                "type": _TYPES.get(refused.status, "server_error"),
                "param": refused.field if isinstance(refused, BadFieldError) else None,
                "code": refused.status,
            }
        }
    )
