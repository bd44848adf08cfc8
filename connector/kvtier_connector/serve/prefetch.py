"""Answers a request that says of its prompt that it comes soon: blocks are fetched, nothing is computed."""

import asyncio
import json
import logging
import time
import uuid
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json_object
from kvtier_common.hints import FIELD, parse_hints
from kvtier_connector.serve.asgi import Answer, Ask, Headers, Request, json_answer

MOST_BODY_BYTES: Final = 8 << 20
"""Of a request that is looked at; longer ones are computed."""
CHAT_PATH: Final = "/v1/chat/completions"
PATHS: Final = frozenset({"/v1/completions", CHAT_PATH})
_MARK: Final = b'"prefetch"'
_MOST_PROMPTS: Final = 64  # of one request
_SOCKET_S: Final = 10.0
_AUTHORIZATION: Final = "authorization"
_OF_CHATS: Final = (
    "messages",
    "tools",
    "chat_template",
    "chat_template_kwargs",
    "add_generation_prompt",
    "continue_final_message",
    "add_special_tokens",
    "mm_processor_kwargs",
    "media_io_kwargs",
)
"""Of a request, what decides the prompt that its messages become, and /tokenize knows."""

log: Final = logging.getLogger("vllm.kvtier")


def prefetch_in(body: bytes) -> dict[str, Any] | None:
    """Return a request that asks for a prefetch and for nothing else; None for any other, in no time."""
    if _MARK not in body:
        return None
    try:
        request = parse_json_object(body, most_bytes=MOST_BODY_BYTES)
    except MalformedError:
        return None  # the engine says what is wrong with it
    params = request.get("kv_transfer_params")
    if not isinstance(params, Mapping) or FIELD not in params:
        return None
    return request if parse_hints(params[FIELD])[0].prefetch else None


async def answer_prefetch(
    request: Mapping[str, Any], path: str, headers: Headers, ask: Ask, control_path: str
) -> Answer | None:
    """Have a request's blocks fetched. None if it has no prompt in a known form: the engine says so then.

    Whoever may not ask the engine for the answer may not ask for this either, and is told so by the engine.
    """
    own = {_AUTHORIZATION: headers[_AUTHORIZATION]} if _AUTHORIZATION in headers else {}
    models = await ask(Request("GET", "/v1/models", headers=own))
    if not models.is_ok:
        return models
    prompts = _prompts(request, path)
    if prompts is None:
        return None
    tokens = list[list[int]]()
    for prompt in prompts:
        found = prompt if isinstance(prompt, list) else await _tokenized(prompt, request, ask)
        if isinstance(found, Answer):
            return found
        tokens.append(found)
    model = request.get("model")
    if not _is_adapter(model, models.json()):  # whose blocks have other names
        for prompt_tokens in tokens:
            message = {
                "verb": "prefetch",
                "tokens": prompt_tokens,
                "cache_salt": request.get("cache_salt") or "",
            }
            await tell_engines(control_path, message)
    served = model if isinstance(model, str) and model else _first_model(models.json())
    return _completion(request, path, served, [len(prompt_tokens) for prompt_tokens in tokens])


async def tell_engines(control_path: str, message: Mapping[str, object]) -> None:
    """Send a message to every engine's control socket in a folder; who does not listen misses it."""
    for path in _sockets(control_path):
        try:
            await asyncio.wait_for(_tell(path, message), _SOCKET_S)
        except (OSError, ValueError, asyncio.TimeoutError) as error:
            log.info("kvtier: a prefetch is passed over: %s: %s", path, error or type(error).__name__)


def _sockets(control_path: str) -> list[Path]:
    return sorted(Path(control_path).glob("engine-*.sock")) if control_path else []


async def _tell(path: Path, message: Mapping[str, object]) -> None:
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        await writer.drain()
        await reader.readline()
    finally:
        writer.close()


def _prompts(request: Mapping[str, Any], path: str) -> Sequence[list[int] | Mapping[str, Any]] | None:
    """Return each prompt as token ids, or as what /tokenize is asked."""
    if path == CHAT_PATH:
        return (
            [{name: request[name] for name in _OF_CHATS if name in request}]
            if request.get("messages")
            else None
        )
    prompt = request.get("prompt")
    several = [prompt] if isinstance(prompt, str) or _are_tokens(prompt) else prompt
    if not isinstance(several, list) or not 0 < len(several) <= _MOST_PROMPTS:
        return None
    if not all(isinstance(one, str) or _are_tokens(one) for one in several):
        return None
    special = {name: request[name] for name in ("add_special_tokens",) if name in request}
    return [{"prompt": one, **special} if isinstance(one, str) else one for one in several]


def _are_tokens(value: object) -> bool:
    return (
        isinstance(value, list) and bool(value) and all(type(token) is int and token >= 0 for token in value)
    )


async def _tokenized(prompt: Mapping[str, Any], request: Mapping[str, Any], ask: Ask) -> list[int] | Answer:
    """Return a prompt's token ids, or what the engine says is wrong with it."""
    model = {"model": request["model"]} if request.get("model") else {}
    answer = await ask(Request("POST", "/tokenize", {**prompt, **model}))
    said = answer.json()
    if answer.is_ok and isinstance(said, dict) and _are_tokens(said.get("tokens")):
        tokens: list[int] = said["tokens"]
        return tokens
    if isinstance(said, dict) and "error" in said:
        return answer
    return []  # a server without /tokenize: nothing is fetched


def _models(listed: object) -> list[Mapping[str, Any]]:
    data = listed.get("data") if isinstance(listed, Mapping) else None
    return [model for model in data if isinstance(model, Mapping)] if isinstance(data, list) else []


def _is_adapter(model: object, listed: object) -> bool:
    return any(one.get("id") == model and one.get("parent") for one in _models(listed))


def _first_model(listed: object) -> str:
    return next((str(one.get("id")) for one in _models(listed)), "")


def _completion(request: Mapping[str, Any], path: str, model: str, prompt_tokens: Sequence[int]) -> Answer:
    """Return an answer without output, in the form that was asked for."""
    is_chat, streams = path == CHAT_PATH, bool(request.get("stream"))
    text: dict[str, Any] = {"text": ""}
    if is_chat:
        text = {"delta" if streams else "message": {"role": "assistant", "content": ""}}
    choices = [
        {"index": index, **text, "logprobs": None, "finish_reason": "stop"}
        for index in range(len(prompt_tokens))
    ]
    total = sum(prompt_tokens)
    usage = {"prompt_tokens": total, "total_tokens": total, "completion_tokens": 0}
    kind = "chat.completion" if is_chat else "text_completion"
    head = {
        "id": f"{'chatcmpl' if is_chat else 'cmpl'}-{uuid.uuid4().hex}",
        "object": f"{kind}.chunk" if is_chat and streams else kind,
        "created": int(time.time()),
        "model": model,
    }
    if not streams:
        return json_answer(HTTPStatus.OK, {**head, "choices": choices, "usage": usage})
    options = request.get("stream_options")
    with_usage = isinstance(options, Mapping) and bool(options.get("include_usage"))
    events: list[Mapping[str, Any]] = [{**head, "choices": choices}]
    if with_usage:
        events.append({**head, "choices": [], "usage": usage})
    lines = [*(json.dumps(event) for event in events), "[DONE]"]
    body = "".join(f"data: {line}\n\n" for line in lines).encode()
    return Answer(HTTPStatus.OK, body, {"content-type": "text/event-stream; charset=utf-8"})
