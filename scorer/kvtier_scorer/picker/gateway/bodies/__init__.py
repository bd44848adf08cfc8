"""Request bodies as prompts: one file an API, registered here by the path that follows any prefix."""

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import unquote

from kvtier_scorer.picker.gateway.bodies.apis import chat_completions, completions, embeddings, responses
from kvtier_scorer.picker.gateway.bodies.fields import Body, parse_body
from kvtier_scorer.picker.gateway.bodies.json_size import is_bounded
from kvtier_scorer.scheduling.model import Prompt

__all__ = ["APIS", "UNKNOWN_PROMPT", "api_of", "plain_path", "prompt_and_body", "read_prompt"]

APIS: Final[Mapping[str, Callable[[Body], Prompt]]] = {
    "/v1/chat/completions": chat_completions,
    "/v1/completions": completions,
    "/v1/responses": responses,
    "/v1/embeddings": embeddings,
}
_VERSION: Final = "/v1/"

UNKNOWN_PROMPT: Final = Prompt("", "", b"")
"""Of a request that is not one of these APIs, or too dense to be read: it matches no prefix, and goes where
load is least."""


def plain_path(path: str) -> str:
    """A request's path as servers compare it: without its query, percent-decoded."""
    return unquote(path.partition("?")[0]).rstrip("/")


def api_of(path: str) -> Callable[[Body], Prompt] | None:
    """Reads the bodies of a path, which has any prefix and query; None where none of these APIs is there."""
    path = plain_path(path)
    return APIS.get(path[max(path.rfind(_VERSION), 0) :])


def prompt_and_body(path: str, body: bytes) -> tuple[Prompt, Body]:
    """The prompt in a request's body, and that body; UNKNOWN_PROMPT and nothing where it is not looked at.

    It is not where the path is no API of ours, nor where it would be too many objects: engines may take it,
    and it costs the picker nothing. Raises BadRequestError: the engines would not understand it either.
    """
    api = api_of(path)
    if api is None or not is_bounded(body):
        return UNKNOWN_PROMPT, {}
    fields = parse_body(body)
    return api(fields), fields


def read_prompt(path: str, body: bytes) -> Prompt:
    """The prompt alone, as `prompt_and_body` tells it, with its error."""
    return prompt_and_body(path, body)[0]
