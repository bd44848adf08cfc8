"""Request bodies as prompts: one file an API, registered here by the path that follows any prefix."""

from collections.abc import Callable, Mapping
from typing import Final

from kvtier_scorer.picker.bodies.chat_completions import chat_completions
from kvtier_scorer.picker.bodies.completions import completions
from kvtier_scorer.picker.bodies.embeddings import embeddings
from kvtier_scorer.picker.bodies.fields import Body, parse_body
from kvtier_scorer.picker.bodies.responses import responses
from kvtier_scorer.scheduling.model import Prompt

__all__ = ["APIS", "UNKNOWN_PROMPT", "read_prompt"]

APIS: Final[Mapping[str, Callable[[Body], Prompt]]] = {
    "/v1/chat/completions": chat_completions,
    "/v1/completions": completions,
    "/v1/responses": responses,
    "/v1/embeddings": embeddings,
}
_VERSION: Final = "/v1/"

UNKNOWN_PROMPT: Final = Prompt("", "", b"")
"""Of a request that is not one of these APIs: it matches no prefix, and goes where there is room."""


def read_prompt(path: str, body: bytes) -> Prompt:
    """The prompt in a request's body.

    Args:
        path: Of the request, with any prefix and query.
        body: As the client sent it; of a path that is no API of ours it is not looked at.

    Raises:
        BadRequestError: The engines would not understand it either.
    """
    path = path.partition("?")[0].rstrip("/")
    api = APIS.get(path[max(path.rfind(_VERSION), 0) :])
    return UNKNOWN_PROMPT if api is None else api(parse_body(body))
