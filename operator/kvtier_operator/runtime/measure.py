"""Asks an OpenAI-compatible server one question, streaming, and times the first token.

One blocking connection that is kept alive, the request encoded beforehand: between the start of the clock
and the request there is one system call. http.client sets TCP_NODELAY.
"""

import http.client
import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

from kvtier_common.benchmarks import StreamedError, error_message, event_of, text_of, usage_of
from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import MOST_BYTES, parse_json_object
from kvtier_operator.errors import RuntimeFailedError

_HTTP_OK: Final = 200


@dataclass(frozen=True, slots=True)
class Query:
    """A request body, encoded once and sent as often as wanted."""

    path: str  # where to send it, below the server's base URL
    body: bytes  # JSON

    @classmethod
    def completion(cls, model: str, prompt: str, max_tokens: int, **more: object) -> Self:
        """Continue `prompt`; `more` are further fields of the body."""
        return cls._encode(
            "/completions", {"model": model, "prompt": prompt, "max_tokens": max_tokens, **more}
        )

    @classmethod
    def chat(cls, model: str, prompt: str, max_tokens: int, **more: object) -> Self:
        """Answer `prompt`, said by the user; `more` are further fields of the body."""
        messages = [{"role": "user", "content": prompt}]
        fields = {"model": model, "messages": messages, "max_tokens": max_tokens, **more}
        return cls._encode("/chat/completions", fields)

    @classmethod
    def _encode(cls, path: str, fields: Mapping[str, object]) -> Self:
        streamed = {"temperature": 0, "stream": True, "stream_options": {"include_usage": True}}
        return cls(path, json.dumps({**streamed, **fields}).encode())


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    ttft_s: float  # from sending the request to the first generated token
    total_s: float  # to the end of the answer
    text: str  # the generated text
    prompt_tokens: int | None  # as the server counted; None where it does not say
    completion_tokens: int | None  # likewise


class OpenAIClient:
    """One connection to an OpenAI-compatible server, whose URL may end in `/v1`.

    What fails is a RuntimeFailedError of one line: no URL, no answer in `timeout_s`, or another than 200.
    """

    def __init__(self, url: str, *, api_key: str | None = None, timeout_s: float = 600.0) -> None:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        try:
            port = parts.port
        except ValueError as error:
            raise RuntimeFailedError(f"{url}: not a URL: {error}") from error
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise RuntimeFailedError(f"{url}: not a URL of a server: write it as http://host:port")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname, port, timeout=timeout_s)
        self._root = parts.path.rstrip("/").removesuffix("/v1")
        self._base = f"{self._root}/v1"
        self._headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._url = f"{parts.scheme}://{parts.netloc}{self._base}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def first_model(self) -> str:
        """Name of the first model the server lists."""
        try:
            listed = parse_json_object(self._body(self._exchange("GET", "/models", None))).get("data")
        except MalformedError as error:
            raise self._no_server(error) from error
        match listed:
            case [{"id": str(name)}, *_]:
                return name
        raise RuntimeFailedError(f"{self._url}: the server lists no model: name one with --model")

    def text(self, path: str) -> str:
        """What the server answers to GET `path`, above `/v1`."""
        return self._body(self._exchange("GET", path, None, base=self._root)).decode(errors="replace")

    def post(self, path: str, body: bytes) -> bytes:
        """What the server answers to POST `path`, above `/v1`."""
        return self._body(self._exchange("POST", path, body, base=self._root))

    def ask(self, query: Query) -> Answer:
        """Send `query` and read the whole answer."""
        start = time.perf_counter()
        response = self._exchange("POST", query.path, query.body)
        ttft_s: float | None = None
        text: list[str] = []
        usage: Mapping[str, int] = {}
        for event in self._events(response):
            piece = text_of(event)
            if ttft_s is None and piece:
                ttft_s = time.perf_counter() - start
            text.append(piece)
            usage = usage_of(event) or usage
        if ttft_s is None:
            raise RuntimeFailedError(f"{self._url}: the server generated nothing")
        return Answer(
            ttft_s=ttft_s,
            total_s=time.perf_counter() - start,
            text="".join(text),
            prompt_tokens=usage.get("prompt_tokens"),
            completion_tokens=usage.get("completion_tokens"),
        )

    def _exchange(
        self, method: str, path: str, body: bytes | None, base: str | None = None
    ) -> http.client.HTTPResponse:
        try:
            response = self._send(method, (self._base if base is None else base) + path, body)
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            reason = str(error) or type(error).__name__
            raise RuntimeFailedError(f"{self._url}: the server does not answer: {reason}") from error
        if response.status != _HTTP_OK:
            raise RuntimeFailedError(
                f"{self._url}{path}: {response.status} {error_message(self._body(response))}"
            )
        return response

    def _send(self, method: str, target: str, body: bytes | None) -> http.client.HTTPResponse:
        """Send a request, a second time on a new connection where the server had closed the idle one."""
        reused = self._connection.sock is not None
        try:
            self._connection.request(method, target, body, self._headers)
            return self._connection.getresponse()
        except ConnectionError:  # http.client.RemoteDisconnected is one
            self._connection.close()
            if not reused:
                raise
        self._connection.request(method, target, body, self._headers)
        return self._connection.getresponse()

    def _events(self, response: http.client.HTTPResponse) -> Iterator[Mapping[str, Any]]:
        try:
            while line := response.readline(MOST_BYTES):
                if (event := event_of(line)) is not None:
                    yield event
            response.read()  # http.client takes an answer with a length for read only after this
        except StreamedError as error:
            raise RuntimeFailedError(f"{self._url}: {error}") from error
        except (OSError, http.client.HTTPException) as error:
            raise RuntimeFailedError(f"{self._url}: the server broke off its answer: {error}") from error
        except ValueError as error:
            raise self._no_server(error) from error

    def _body(self, response: http.client.HTTPResponse) -> bytes:
        """A whole answer; what follows one that is too long is not waited for."""
        content = response.read(MOST_BYTES)
        if len(content) == MOST_BYTES:
            self._connection.close()
            raise RuntimeFailedError(f"{self._url}: the server answers with more than {MOST_BYTES:,} bytes")
        return content

    def _no_server(self, error: Exception) -> RuntimeFailedError:
        return RuntimeFailedError(f"{self._url}: not an OpenAI-compatible server: {error}")


@dataclass(frozen=True, slots=True)
class Samples:
    """One time, measured at least once."""

    seconds: tuple[float, ...]  # each measurement, in the order taken

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Samples":
        """Samples of any sequence; a ValueError where it is empty."""
        if not seconds:
            raise ValueError("no samples")
        return cls(tuple(seconds))

    @property
    def median_s(self) -> float:
        """The median."""
        return statistics.median(self.seconds)

    @property
    def quartiles_s(self) -> tuple[float, float]:
        """First and third quartile; the samples themselves where there is only one."""
        if len(self.seconds) == 1:
            return self.seconds[0], self.seconds[0]
        first, _, third = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return first, third

    def to_json(self) -> dict[str, Any]:
        """Median, spread and every sample, for a report."""
        first, third = self.quartiles_s
        return {
            "median_s": self.median_s,
            "min_s": min(self.seconds),
            "max_s": max(self.seconds),
            "quartile_1_s": first,
            "quartile_3_s": third,
            "samples_s": list(self.seconds),
        }


def seconds(time_s: float) -> str:
    """A time for a reader: milliseconds below a second."""
    return f"{time_s * 1000:.0f} ms" if time_s < 1 else f"{time_s:.1f} s"


@dataclass(frozen=True, slots=True)
class QueryTwice:
    """One cold query and its repetitions."""

    model: str
    cold: Answer  # the first query
    warm: tuple[Answer, ...]  # the same query again, in order

    @property
    def warm_samples(self) -> Samples:
        """Times to first token of the repetitions."""
        return Samples.of([answer.ttft_s for answer in self.warm])

    @property
    def speedup(self) -> float:
        """Cold time to first token over the median of the warm ones."""
        return self.cold.ttft_s / self.warm_samples.median_s

    @property
    def outputs_equal(self) -> bool:
        """Whether every answer was the same."""
        return all(answer.text == self.cold.text for answer in self.warm)

    def to_json(self) -> dict[str, Any]:
        """The figures, for a program."""
        return {
            "model": self.model,
            "prompt_tokens": self.cold.prompt_tokens,
            "cold_ttft_s": self.cold.ttft_s,
            "warm_ttft_s": self.warm_samples.median_s,
            "speedup": self.speedup,
            "outputs_equal": self.outputs_equal,
            "warm": self.warm_samples.to_json(),
        }


def query_twice(
    client: OpenAIClient, model: str, query: Query, repeat: int, done: Callable[[int, Answer], None]
) -> QueryTwice:
    """Send `query` once cold and `repeat` times warm; `done` is told of each answer, number 0 the cold."""
    answers = []
    for number in range(repeat + 1):
        answers.append(client.ask(query))
        done(number, answers[-1])
    return QueryTwice(model, answers[0], tuple(answers[1:]))
