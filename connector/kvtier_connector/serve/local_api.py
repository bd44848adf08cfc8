"""Asks an engine's own API, on this machine's loopback: computes prompts so that their blocks are there.

Of the standard library alone: it runs in the engine's container, whichever image that has.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any, Final

from kvtier_common.errors import KvtierError, MalformedError
from kvtier_common.formats.json_text import parse_json
from kvtier_common.hints import FIELD, NO_HINTS, Hints
from kvtier_common.one_line import one_line

DEFAULT_PORT: Final = 8000
API_KEY_VARIABLE: Final = "VLLM_API_KEY"
"""vLLM's own, which its server asks for where it is set; it is in this container's environment, too."""
_HOST: Final = "127.0.0.1"
_MOST_BYTES: Final = 64 << 20  # of an answer: the token ids of a prompt of a million tokens have 8 MiB
_MOST_CHARACTERS: Final = 300  # of what an engine says is wrong


class LocalApiError(KvtierError):
    """The engine's API does not answer, or refuses; one line."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt, in one of three forms."""

    text: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()  # of a chat, which the model's template makes a prompt of
    tools: tuple[Mapping[str, Any], ...] = ()  # with messages: what the template is given of them
    tokens: tuple[int, ...] = ()
    cache_salt: str = ""  # keeps its blocks apart from those of prompts with another

    def body(self, model: str) -> tuple[str, dict[str, Any]]:
        """Return the path and the body that have it computed, with as little output as there is."""
        body: dict[str, Any] = {"model": model, "max_tokens": 1, "temperature": 0}
        if self.cache_salt:
            body["cache_salt"] = self.cache_salt
        if self.messages:
            tools = {"tools": list(self.tools)} if self.tools else {}
            return "/v1/chat/completions", {**body, **tools, "messages": list(self.messages)}
        return "/v1/completions", {**body, "prompt": list(self.tokens) or self.text}


@dataclass(frozen=True, slots=True)
class Computed:
    """What became of a prompt."""

    tokens: int = 0  # of the prompt, as the engine counts them
    cached_tokens: int = 0  # of those, found in a cache; 0 too where the engine does not say it
    error: str = ""  # why it was not computed, one line; empty where it was


def read_prompt(value: object) -> Prompt:
    """Read `{"prompt"}`, `{"messages", "tools"}` or `{"tokens"}`, each with a `cache_salt` if it has one.

    Raises MalformedError: it is none of them; the line says what would be.
    """
    fields = dict(value) if isinstance(value, Mapping) else {}
    salt = fields.pop("cache_salt", "")
    tools = fields.pop("tools", []) if "messages" in fields else []
    if not isinstance(salt, str) or not _is_list_of(tools, Mapping) or len(fields) != 1:
        raise _no_prompt()
    [(form, content)] = fields.items()
    if form == "prompt" and isinstance(content, str) and content:
        return Prompt(text=content, cache_salt=salt)
    if form == "messages" and content and _is_list_of(content, Mapping):
        return Prompt(messages=tuple(content), tools=tuple(tools), cache_salt=salt)
    if form == "tokens" and content and _is_list_of(content, int):
        return Prompt(tokens=tuple(content), cache_salt=salt)
    raise _no_prompt()


def read_prompts(lines: Iterable[str]) -> Iterator[Prompt]:
    """Read one prompt a line, as JSON; empty lines are passed over.

    Raises MalformedError: names the line.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield read_prompt(parse_json(line, most_bytes=_MOST_BYTES))
        except MalformedError as error:
            raise MalformedError(f"line {number}: {error}") from error


def compute_prompts(
    prompts: Iterable[Prompt],
    *,
    port: int = DEFAULT_PORT,  # of the engine's API on this machine
    model: str = "",  # the name that it serves; empty to ask it
    hints: Hints = NO_HINTS,  # what is said of each prompt's blocks
    until_s: float,  # when to give up, by time.monotonic()
) -> Iterator[Computed]:
    """Have prompts computed, one after another; each is told as it ends, with its error where it failed.

    Raises LocalApiError: the engine does not tell the name of its model.
    """
    name = model or served_model(port=port, until_s=until_s)
    params = hints.to_params()
    for prompt in prompts:
        path, body = prompt.body(name)
        if params:
            body["kv_transfer_params"] = {FIELD: params}
        try:
            usage = _ask("POST", path, body, port, until_s).get("usage") or {}
            details = usage.get("prompt_tokens_details") or {}
            yield Computed(int(usage.get("prompt_tokens") or 0), int(details.get("cached_tokens") or 0))
        except (LocalApiError, AttributeError, TypeError, ValueError) as error:
            yield Computed(error=one_line(str(error), _MOST_CHARACTERS))


def served_model(*, port: int = DEFAULT_PORT, until_s: float) -> str:
    """Return the first name under which an engine serves its model. Raises LocalApiError."""
    listed = _ask("GET", "/v1/models", None, port, until_s)
    try:
        return str(listed["data"][0]["id"])
    except (KeyError, IndexError, TypeError) as error:
        raise LocalApiError(f"http://{_HOST}:{port}/v1/models: names no model") from error


def tokens_of(
    prompt: Prompt, *, port: int = DEFAULT_PORT, model: str = "", until_s: float
) -> tuple[int, ...]:
    """Return a prompt's token ids, as the engine makes them. Raises LocalApiError."""
    if prompt.tokens:
        return prompt.tokens
    body: dict[str, Any] = {"model": model} if model else {}
    if prompt.messages:
        body |= {"messages": list(prompt.messages), **({"tools": list(prompt.tools)} if prompt.tools else {})}
    else:
        body |= {"prompt": prompt.text}
    tokens: Any = _ask("POST", "/tokenize", body, port, until_s).get("tokens")
    if not _is_list_of(tokens, int):
        raise LocalApiError(f"http://{_HOST}:{port}/tokenize: answers without token ids")
    return tuple(tokens)


def _ask(method: str, path: str, body: object, port: int, until_s: float) -> dict[str, Any]:
    """Ask once, on a connection of its own. Raises LocalApiError: one line with the address."""
    where = f"http://{_HOST}:{port}{path}"
    left_s = until_s - time.monotonic()
    if left_s <= 0:
        raise LocalApiError(f"{where}: the time is over")
    key = os.environ.get(API_KEY_VARIABLE, "")
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    connection = HTTPConnection(_HOST, port, timeout=left_s)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        content = response.read(_MOST_BYTES + 1)
        answer = parse_json(content, most_bytes=_MOST_BYTES)
    except (OSError, HTTPException, ValueError) as error:
        raise LocalApiError(f"{where}: {error or type(error).__name__}") from error
    finally:
        connection.close()
    if response.status != 200 or not isinstance(answer, dict):  # noqa: PLR2004 - HTTP's own
        raise LocalApiError(f"{where}: {response.status}: {_reason(answer)}")
    return answer


def _reason(answer: object) -> str:
    """Return what an engine says is wrong; vLLM wraps it in `error`, and earlier did not."""
    said = answer.get("error", answer) if isinstance(answer, dict) else None
    message = said.get("message") if isinstance(said, dict) else said
    return one_line(str(message or "an answer that is no JSON object"), _MOST_CHARACTERS)


def _is_list_of(value: object, kind: type) -> bool:
    items = value if isinstance(value, list) else None
    return items is not None and all(isinstance(item, kind) and not isinstance(item, bool) for item in items)


def _no_prompt() -> MalformedError:
    return MalformedError(
        'must be a JSON object with one of "prompt" (text), "messages" (a chat\'s) and "tokens" (ids), '
        'and with "cache_salt" where the prompt has one'
    )
