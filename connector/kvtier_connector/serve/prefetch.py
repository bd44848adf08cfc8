"""Answers a request that says of its prompt that it comes soon: blocks are fetched, nothing is computed."""

import asyncio
import json
import logging
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from kvtier_common.hints import FIELD, parse_hints
from kvtier_connector.serve.asgi import Answer, Ask, Headers, Request, json_answer
from kvtier_connector.serve.prefixes import are_tokens

MOST_BODY_BYTES: Final = 1 << 20
"""Of a request that is looked at; longer ones are computed."""
MOST_PROMPTS: Final = 8
"""Of a request that is looked at; one with more is computed."""
MOST_AT_A_TIME: Final = 2
"""Requests of one server whose blocks are fetched; nothing is fetched for those beyond."""
CHAT_PATH: Final = "/v1/chat/completions"
PATHS: Final = frozenset({"/v1/completions", CHAT_PATH})
_PARAMS: Final = b'"kv_transfer_params"'
_MARKS: Final = (f'"{FIELD}"'.encode(), b'"prefetch"')
_NEAR_BYTES: Final = 4096  # of the parameters' name the hint has to be
_REQUEST_S: Final = 10.0  # how long one may take in all
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


@dataclass(frozen=True, slots=True)
class _Announced:
    """A request that asks for a prefetch and for nothing else."""

    request: Mapping[str, Any]
    prompts: Sequence[list[int] | Mapping[str, Any]]  # each as token ids, or as what /tokenize is asked


class PrefetchAnswers:
    """Answers the requests of one API server."""

    def __init__(self, control_path: str) -> None:
        """Tell the engines whose sockets are in a folder; with no folder nothing is fetched."""
        self._control_path = control_path
        self._under_way = 0

    async def answer(self, body: bytes, path: str, headers: Headers, ask: Ask) -> Answer | None:
        """Have a request's blocks fetched. None if it is for the engine, which also says what is bad in it.

        Whoever may not ask the engine for models has nothing read: the engine refuses the request, too.
        """
        if not may_be_prefetch(body):
            return None
        own = {_AUTHORIZATION: headers[_AUTHORIZATION]} if _AUTHORIZATION in headers else {}
        models = await ask(Request("GET", "/v1/models", headers=own))
        announced = await asyncio.to_thread(_read, body, path) if models.is_ok else None
        if announced is None:
            return None
        try:
            return await self._fetched(announced, path, models.json(), ask)
        except RecursionError:  # deeper than it can be written again
            return None

    async def _fetched(self, announced: _Announced, path: str, listed: object, ask: Ask) -> Answer:
        counts = [0] * len(announced.prompts)
        refused = None
        if self._under_way < MOST_AT_A_TIME:
            self._under_way += 1
            try:
                refused = await asyncio.wait_for(self._fetch(announced, listed, ask, counts), _REQUEST_S)
            except asyncio.TimeoutError:
                log.info("kvtier: a prefetch is given up: it is not done in %g s", _REQUEST_S)
            finally:
                self._under_way -= 1
        if refused is not None:
            return refused
        model = announced.request.get("model")
        served = model if isinstance(model, str) and model else _first_model(listed)
        return _completion(announced.request, path, served, counts)

    async def _fetch(
        self, announced: _Announced, listed: object, ask: Ask, counts: list[int]
    ) -> Answer | None:
        """Fetch each prompt and count its tokens, or return what the engine says is wrong with it."""
        request = announced.request
        messages = list[Mapping[str, object]]()
        for index, prompt in enumerate(announced.prompts):
            found = prompt if isinstance(prompt, list) else await _tokenized(prompt, request, ask)
            if isinstance(found, Answer):
                return found
            tokens = found[: _longest(listed)]  # no request has more
            counts[index] = len(tokens)
            salt = request.get("cache_salt") or ""
            messages.append({"verb": "prefetch", "tokens": tokens, "cache_salt": salt})
        if not _is_adapter(request.get("model"), listed):  # whose blocks have other names
            await tell_engines(self._control_path, messages)
        return None


def may_be_prefetch(body: bytes) -> bool:
    """Tell in no time whether a body is worth parsing: whether the hint's names stand near each other."""
    at = body.rfind(_PARAMS)  # of two the last counts
    return at >= 0 and all(body.find(mark, at, at + _NEAR_BYTES) >= 0 for mark in _MARKS)


def _read(body: bytes, path: str) -> _Announced | None:
    """Return what a body announces, if nothing else is asked for and its prompts have a known form.

    To be called in a thread: it takes tens of milliseconds.
    """
    try:
        request = json.loads(body)  # noqa: TID251 - bounded in bytes, of a client that may ask the engine
    except (ValueError, RecursionError):
        return None
    params = request.get("kv_transfer_params") if isinstance(request, dict) else None
    if not isinstance(params, Mapping) or not parse_hints(params.get(FIELD))[0].prefetch:
        return None
    if not isinstance(request.get("cache_salt"), str | None):
        return None
    prompts = _prompts(request, path)
    return None if prompts is None else _Announced(request, prompts)


async def tell_engines(control_path: str, messages: Sequence[Mapping[str, object]]) -> None:
    """Send messages to every engine's control socket in a folder; who does not listen misses them."""
    lines = await asyncio.to_thread(_lines, messages)
    await asyncio.gather(*(_tell(path, lines) for path in _sockets(control_path)))


def _lines(messages: Sequence[Mapping[str, object]]) -> list[bytes]:
    return [json.dumps(message, separators=(",", ":")).encode() + b"\n" for message in messages]


def _sockets(control_path: str) -> list[Path]:
    return sorted(Path(control_path).glob("engine-*.sock")) if control_path else []


async def _tell(path: Path, lines: Sequence[bytes]) -> None:
    try:
        reader, writer = await asyncio.open_unix_connection(path)
        try:
            for line in lines:
                writer.write(line)
                await writer.drain()
                await reader.readline()
        finally:
            writer.close()  # which ends what the engine does for it
    except (OSError, ValueError) as error:
        log.info("kvtier: a prefetch is passed over: %s: %s", path, error)


def _prompts(request: Mapping[str, Any], path: str) -> Sequence[list[int] | Mapping[str, Any]] | None:
    """Return each prompt as token ids, or as what /tokenize is asked."""
    if path == CHAT_PATH:
        return (
            [{name: request[name] for name in _OF_CHATS if name in request}]
            if request.get("messages")
            else None
        )
    prompt = request.get("prompt")
    several = [prompt] if isinstance(prompt, str) or are_tokens(prompt) else prompt
    if not isinstance(several, list) or not 0 < len(several) <= MOST_PROMPTS:
        return None
    if not all(isinstance(one, str) or are_tokens(one) for one in several):
        return None
    special = {name: request[name] for name in ("add_special_tokens",) if name in request}
    return [{"prompt": one, **special} if isinstance(one, str) else one for one in several]


async def _tokenized(prompt: Mapping[str, Any], request: Mapping[str, Any], ask: Ask) -> list[int] | Answer:
    """Return a prompt's token ids, or what the engine says is wrong with it."""
    model = {"model": request["model"]} if request.get("model") else {}
    answer = await ask(Request("POST", "/tokenize", {**prompt, **model}))
    return await asyncio.to_thread(_tokens_in, answer)


def _tokens_in(answer: Answer) -> list[int] | Answer:
    said = answer.json()
    if answer.is_ok and isinstance(said, dict) and are_tokens(said.get("tokens")):
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


def _longest(listed: object) -> int | None:
    """Return how many tokens a prompt may have; None where no model says it."""
    lengths = [length for one in _models(listed) if type(length := one.get("max_model_len")) is int]
    return max(lengths, default=None)


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
