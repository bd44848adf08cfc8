"""Asks an OpenAI-compatible server, streaming, and times the first token."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import aiohttp

from kvtier_common.benchmarks import StreamedError, error_message, event_of, text_of, usage_of
from kvtier_common.errors import TooLargeError
from kvtier_common.formats.json_text import MOST_BYTES, parse_json_object
from kvtier_common.http.answer import read_body
from kvtier_scorer.bench.shared_prefix.errors import ServerError
from kvtier_scorer.bench.shared_prefix.workload import Question

_HTTP_OK: Final = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one request, with times from when it was sent.

    Attributes:
        group: Number of its system prompt.
        ttft_s: Until its first token, waiting included.
        e2e_s: Until its end.
        prompt_tokens: As the server counted; 0 where it does not say.
        cached_tokens: Prompt tokens that the server found in a cache; None where it does not say.
        output_tokens: Generated tokens, as the server counted.
        error: What went wrong, in one line; empty for an answer.
    """

    group: int
    ttft_s: float
    e2e_s: float
    prompt_tokens: int = 0
    cached_tokens: int | None = None
    output_tokens: int = 0
    error: str = ""


class Server:
    """An OpenAI-compatible server behind one URL, over connections that are kept.

    Args:
        url: Base URL, with or without `/v1`.
        api_key: Sent as a bearer token.
        timeout_s: How long the server may be silent.
        connections: Requests under way at most.

    Raises:
        ServerError: The URL is not one.
    """

    def __init__(self, url: str, *, api_key: str | None, timeout_s: float, connections: int) -> None:
        if not url.startswith(("http://", "https://")):
            raise ServerError(f"--url: got {url!r}: write it as http://host:port")
        self._url = url.rstrip("/").removesuffix("/v1")
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._session = aiohttp.ClientSession(
            headers=headers,
            connector=aiohttp.TCPConnector(limit=connections),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=timeout_s),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def first_model(self) -> str:
        """Name of the first model that the server lists.

        Raises:
            ServerError: The server does not answer, or lists none.
        """
        match (await self._json("GET", "/v1/models")).get("data"):
            case [{"id": str(name)}, *_]:
                return name
        raise ServerError(f"{self._url}: the server lists no model: name one with --model")

    async def words_per_token(self, model: str, sample: str) -> float:
        """Words of `sample` that the model makes one token of; at 4 bytes a token where it does not say."""
        try:
            answer = await self._json("POST", "/tokenize", {"model": model, "prompt": sample})
            tokens = int(answer["count"])
        except (ServerError, KeyError, TypeError, ValueError):
            tokens = len(sample) // 4
        return len(sample.split()) / max(1, tokens)

    async def ask(self, model: str, question: Question, output_tokens: int) -> Answer:
        """Send one question and read its whole answer; a failure is part of the answer."""
        body = {
            "model": model,
            "messages": [
                {"role": "system", "content": question.system},
                {"role": "user", "content": question.text},
            ],
            "max_tokens": output_tokens,
            "ignore_eos": True,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        encoded = json.dumps(body).encode()
        start = time.perf_counter()
        first: float | None = None
        usage: Mapping[str, int] = {}
        try:
            async for event in self._stream(encoded):
                if first is None and text_of(event):
                    first = time.perf_counter()
                usage = usage_of(event) or usage
        except (ServerError, StreamedError, aiohttp.ClientError, OSError, ValueError) as error:
            reason = str(error) or type(error).__name__
            return Answer(question.group, 0.0, time.perf_counter() - start, error=reason)
        if first is None:
            return Answer(question.group, 0.0, time.perf_counter() - start, error="nothing was generated")
        return Answer(
            group=question.group,
            ttft_s=first - start,
            e2e_s=time.perf_counter() - start,
            prompt_tokens=usage.get("prompt_tokens") or 0,
            cached_tokens=usage.get("cached_tokens"),
            output_tokens=usage.get("completion_tokens") or 0,
        )

    async def _stream(self, body: bytes) -> AsyncIterator[Mapping[str, Any]]:
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        url = f"{self._url}/v1/chat/completions"
        async with self._session.post(url, data=body, headers=headers) as response:
            if response.status != _HTTP_OK:
                raise ServerError(
                    f"{response.status} {error_message(await response.content.read(MOST_BYTES))}"
                )
            async for line in response.content:
                if (event := event_of(line)) is not None:
                    yield event

    async def _json(self, method: str, path: str, body: object = None) -> Mapping[str, Any]:
        url = self._url + path
        try:
            async with self._session.request(method, url, json=body) as response:
                content = await read_body(response.content, url, MOST_BYTES, asyncio.Semaphore(1))
                if response.status != _HTTP_OK:
                    raise ServerError(f"{url}: {response.status} {error_message(content)}")
                return parse_json_object(content)
        except TooLargeError as error:
            raise ServerError(str(error)) from error
        except (aiohttp.ClientError, OSError) as error:
            raise ServerError(
                f"{url}: the server does not answer: {error or type(error).__name__}"
            ) from error
        except ValueError as error:
            raise ServerError(f"{url}: not an OpenAI-compatible server: {error}") from error
