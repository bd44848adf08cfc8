"""Questions about shared prefixes for an OpenAI-compatible server, and what its engines found of them."""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
import click

from kvtier_common.benchmarks import StreamedError, Workload, error_message, event_of, text_of, usage_of
from kvtier_common.errors import TooLargeError
from kvtier_common.formats.json_text import MOST_BYTES, parse_json_object
from kvtier_common.http.answer import read_body
from kvtier_common.metrics.text import read_families

_CONSONANTS: Final = "bcdfghklmnprstvz"
_VOWELS: Final = "aeiou"
_SYLLABLES: Final = tuple(consonant + vowel for consonant in _CONSONANTS for vowel in _VOWELS)


@dataclass(frozen=True, slots=True)
class Question:
    """One request of a workload."""

    group: int  # number of its system prompt
    system: str  # the system prompt
    text: str  # the question


def questions(workload: Workload, words_per_token: float, seed: int) -> list[Question]:
    """The requests of a workload in the order in which they are sent; groups are mixed at random.

    Of so many words of `text` the model's tokenizer makes one token; two seeds share no prefix.
    """
    numbers = random.Random(seed)  # noqa: S311 - not for secrets

    def words(tokens: int) -> str:
        return text(numbers, max(1, round(tokens * words_per_token)))

    order = []
    for group in range(workload.groups):
        system = words(workload.system_tokens)
        order += [
            Question(group, system, words(workload.question_tokens))
            for _ in range(workload.prompts_per_group)
        ]
    numbers.shuffle(order)
    return order


def text(numbers: random.Random, words: int) -> str:
    """Pronounceable words of two syllables: every tokenizer splits them in much the same way everywhere."""
    return " ".join("".join(numbers.choices(_SYLLABLES, k=2)) for _ in range(words))


class ServerError(click.ClickException):
    """The server does not answer, or refuses; one line for the person who started the benchmark."""

    exit_code = 3


_HTTP_OK: Final = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one request, with times from when it was sent."""

    group: int  # number of its system prompt
    ttft_s: float  # until its first token, waiting included
    e2e_s: float  # until its end
    prompt_tokens: int = 0  # as the server counted; 0 where it does not say
    # prompt tokens that the server found in a cache; None where it does not say
    cached_tokens: int | None = None
    output_tokens: int = 0  # generated tokens, as the server counted
    error: str = ""  # what went wrong, in one line; empty for an answer


class Server:
    """An OpenAI-compatible server behind one URL, with or without `/v1`, over connections that are kept.

    It may be silent for `timeout_s`. Raises ServerError: the URL is not one.
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
        """Name of the first model that the server lists; ServerError if it does not answer, or lists none."""
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


@dataclass(frozen=True, slots=True)
class LoadResult:
    """A workload's answers in the order sent, and the seconds from the first request to the last answer."""

    seconds: float
    answers: tuple[Answer, ...]


async def constant_concurrency(
    ask: Callable[[Question], Awaitable[Answer]],  # sends one question and returns its answer; does not raise
    order: Sequence[Question],  # questions as they are sent
    concurrency: int,  # requests under way at any time
    ended: Callable[[Answer], None] = lambda _: None,  # told of each answer
) -> LoadResult:
    """Ask every question, `concurrency` at a time."""
    answers: dict[int, Answer] = {}
    waiting = iter(enumerate(order))

    async def worker() -> None:
        for number, question in waiting:
            answers[number] = await ask(question)
            ended(answers[number])

    start = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, len(order))):
            group.create_task(worker())
    return LoadResult(time.perf_counter() - start, tuple(answers[number] for number in range(len(order))))


_DEVICE_QUERIES: Final = b"vllm:prefix_cache_queries_total"
_DEVICE_HITS: Final = b"vllm:prefix_cache_hits_total"
_TIER_HITS: Final = b"vllm:external_prefix_cache_hits_total"
"""vLLM v1/metrics/loggers.py: tokens asked for and found in the device's cache, and by a connector."""


@dataclass(frozen=True, slots=True)
class FoundTokens:
    """Prompt tokens of one engine, or of several added up."""

    queried: float = 0.0  # looked up
    device: float = 0.0  # found in the device's cache
    tier: float = 0.0  # found by the connector, in memory or on disk

    def __add__(self, other: "FoundTokens") -> "FoundTokens":
        return FoundTokens(self.queried + other.queried, self.device + other.device, self.tier + other.tier)

    def __sub__(self, other: "FoundTokens") -> "FoundTokens":
        return FoundTokens(self.queried - other.queried, self.device - other.device, self.tier - other.tier)


def found_tokens(text: str) -> FoundTokens:
    """Read an engine's metrics; data-parallel engines behind one address are added up.

    Raises ValueError: there is nothing of vLLM's in them.
    """
    families = read_families(text.encode(), (_DEVICE_QUERIES, _DEVICE_HITS, _TIER_HITS))
    if not families.samples:
        raise ValueError(f"these are not vLLM's metrics: {families.start!r}")
    return FoundTokens(
        families.total(_DEVICE_QUERIES), families.total(_DEVICE_HITS), families.total(_TIER_HITS)
    )


async def read_engines(urls: Sequence[str]) -> Mapping[str, FoundTokens]:
    """What each engine has counted since its start. Raises ServerError: one does not answer with metrics."""
    timeout = aiohttp.ClientTimeout(total=30.0)
    async with aiohttp.ClientSession(timeout=timeout) as session:

        async def read(url: str) -> FoundTokens:
            address = f"{url.rstrip('/')}/metrics"
            try:
                async with session.get(address) as response:
                    if response.status != _HTTP_OK:
                        raise ServerError(f"--engine {url}: {address} answered {response.status}")
                    return found_tokens(await response.text())
            except (aiohttp.ClientError, OSError) as error:
                raise ServerError(f"--engine {url}: {error or type(error).__name__}") from error
            except ValueError as error:
                raise ServerError(f"--engine {url}: {address}: {error}") from error

        totals = await asyncio.gather(*(read(url) for url in urls))
    return dict(zip(urls, totals, strict=True))
