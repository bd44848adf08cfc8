"""How a prompt's tokens are found, where estimating them is not enough."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import aiohttp
import msgspec
import numpy as np
import orjson

from kvtier_common.backoff import doubled_s
from kvtier_scorer.config.model import PickerConfigError
from kvtier_scorer.picker.gateway.bodies.fields import MESSAGE
from kvtier_scorer.picker.gateway.ext_proc.service import TokenIds
from kvtier_scorer.scheduling.model import Prompt

_FAILURES: Final = 3
_FIRST_S: Final = 1.0
_LONGEST_WAIT_S: Final = 60.0
_MOST_FAILURES: Final = 16
_MOST_PODS: Final = 4096  # those in trouble; the one that has been for longest is forgotten
_LOG: Final = logging.getLogger(__name__)
_OK: Final = 200
_FAULT: Final = 500
_COMPLETION: Final = ("model", "prompt", "add_special_tokens")
_CHAT: Final = (
    "model", "messages", "add_generation_prompt", "continue_final_message", "add_special_tokens",
    "chat_template", "chat_template_kwargs", "mm_processor_kwargs", "tools",
)  # fmt: skip
"""What decides the tokens (vLLM 0.32, entrypoints/serve/tokenize/protocol.py)."""
_DRAWS: Final = 4  # pods that are looked at for one that may be asked
_ASKED_A_POD: Final = 32  # at a time: each is a connection
_MORE_TOKENS: Final = 1 << 15
"""Than bytes asked about: a chat template's own, and images that are named by a short address."""
_TOKEN_BYTES: Final = 12
_ANSWER_BYTES: Final = 4096  # of an answer, beside its tokens
_MOST_ANSWER_BYTES: Final = 16 << 20
_MOST_HELD_BYTES: Final = 32 << 20  # of all answers that are being read
_PIECE_BYTES: Final = 64 << 10
_SLOW: Final = 0.5
"""Part of the time for an answer; a pod that takes more, some times in a row, is not asked for a while."""
_LOG_INTERVAL_S: Final = 10.0
_NO_ANSWER: Final = (
    aiohttp.ClientError, TimeoutError, OSError, ValueError, msgspec.MsgspecError, RecursionError,
)  # fmt: skip
_SPECIAL: Final = b"+"
_PLAIN: Final = b"-"


@dataclass(slots=True)
class _Trouble:
    failures: int = 0
    until_s: float = 0.0
    is_tried: bool = False


class CircuitBreaker:
    """Per pod: closed, open for a while that doubles up to a minute, then open to one request that tries."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._troubles: dict[str, _Trouble] = {}

    @property
    def open_count(self) -> int:
        """Number of pods that are not asked now."""
        now_s = self._clock()
        return sum(
            trouble.failures >= _FAILURES and now_s < trouble.until_s for trouble in self._troubles.values()
        )

    def try_acquire(self, address: str) -> bool:
        """Whether this request may ask that pod; if it failed before, one request at a time tries it."""
        trouble = self._troubles.get(address)
        if trouble is None or trouble.failures < _FAILURES:
            return True
        now_s = self._clock()
        if now_s < trouble.until_s:
            return False
        trouble.until_s = now_s + _wait_s(trouble.failures)
        trouble.is_tried = True
        return True

    def on_success(self, address: str) -> None:
        """A pod answered in time."""
        self._troubles.pop(address, None)

    def on_failure(self, address: str) -> None:
        """A pod did not answer, or too late. Requests sent before it was known to fail do not count."""
        trouble = self._troubles.setdefault(address, _Trouble())
        if trouble.failures < _FAILURES:
            trouble.failures += 1
            trouble.until_s = self._clock() + _FIRST_S
        elif trouble.is_tried:
            trouble.failures = min(trouble.failures + 1, _MOST_FAILURES)
            trouble.until_s = self._clock() + _wait_s(trouble.failures)
        trouble.is_tried = False
        if len(self._troubles) > _MOST_PODS:
            del self._troubles[next(iter(self._troubles))]


def _wait_s(failures: int) -> float:
    return doubled_s(_FIRST_S, _LONGEST_WAIT_S, max(0, failures - _FAILURES))


class _WrongAnswerError(ValueError):
    """An answer that no engine gives, in a word."""


class _Answer(msgspec.Struct):
    tokens: list[Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]]


_ANSWER: Final = msgspec.json.Decoder(_Answer)


class EngineTokenizer:
    """Asks a ready pod, another one each time if there are several; estimates where none answers in time."""

    def __init__(
        self, address: Callable[[], str | None], timeout_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._clock = clock
        self._circuit_breaker = CircuitBreaker(clock)
        self._session: aiohttp.ClientSession | None = None
        self._held_bytes = 0
        self._trouble = ""
        self._logged_at_s = float("-inf")

    @property
    def skipped_pods(self) -> int:
        """Pods that are not asked for now, because they do not answer, or too slowly."""
        return self._circuit_breaker.open_count

    def tokenize_request(self, prompt: Prompt, body: Mapping[str, Any]) -> bytes | None:
        """What to ask of a chat or a completion with one prompt; of nothing else."""
        request = _tokenize_request(prompt, body)
        try:
            return None if request is None else orjson.dumps(request)
        except orjson.JSONEncodeError:  # fields that are no part of the prompt are not read before
            return None

    async def tokenize(self, request: bytes) -> TokenIds | None:
        """Tokens as an engine tells them."""
        drawn = (self._address() for _ in range(_DRAWS))
        address = next(
            (pod for pod in drawn if pod is not None and self._circuit_breaker.try_acquire(pod)), None
        )
        if address is None:
            return None
        asked_s = self._clock()
        try:
            tokens = await self._ask(address, request)
        except _NO_ANSWER as error:
            self._circuit_breaker.on_failure(address)
            self._tell(str(error) if isinstance(error, _WrongAnswerError) else type(error).__name__)
            return None
        if self._clock() - asked_s > _SLOW * self._timeout_s:
            self._circuit_breaker.on_failure(address)
            self._tell("it is slow")
        else:
            self._circuit_breaker.on_success(address)
            self._tell("")
        return tokens

    async def close(self) -> None:
        """Closes the connections."""
        if self._session is not None:
            await self._session.close()

    async def _ask(self, address: str, request: bytes) -> TokenIds | None:
        if self._session is None:
            self._session = _session(self._timeout_s)
        async with self._session.post(
            f"http://{address}/tokenize", data=request, allow_redirects=False
        ) as response:
            if response.status >= _FAULT:
                raise _WrongAnswerError(f"status {response.status}")
            if response.status != _OK:  # the engine refuses the request itself, and will say so
                return None
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise _WrongAnswerError("its answer is packed")
            tokens = _ANSWER.decode(await self._body(response, len(request) + _MORE_TOKENS)).tokens
        if len(tokens) > len(request) + _MORE_TOKENS:
            raise _WrongAnswerError("it has more tokens than the prompt can have")
        return np.array(tokens, np.uint32)

    async def _body(self, response: aiohttp.ClientResponse, most_tokens: int) -> bytes:
        """The body; its connection is closed, not drained, where there is too much of it."""
        most = min(_MOST_ANSWER_BYTES, _ANSWER_BYTES + _TOKEN_BYTES * most_tokens)
        parts: list[bytes] = []
        size = 0
        try:
            while part := await response.content.read(_PIECE_BYTES):
                size += len(part)
                self._held_bytes += len(part)
                _check_size(size, most)
                _check_size(self._held_bytes, _MOST_HELD_BYTES)
                parts.append(part)
                await asyncio.sleep(0)
            return b"".join(parts)
        except BaseException:
            response.close()
            raise
        finally:
            self._held_bytes -= size

    def _tell(self, trouble: str) -> None:
        """One line when it begins to fail, and not for each of several pods that take turns."""
        now_s = self._clock()
        if trouble and not self._trouble and now_s - self._logged_at_s >= _LOG_INTERVAL_S:
            _LOG.warning(
                "/tokenize of the engines fails (%s); tokens are estimated, %d pods are not asked for now",
                trouble, self._circuit_breaker.open_count,
            )  # fmt: skip
            self._logged_at_s = now_s
        self._trouble = trouble


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise _WrongAnswerError("its answer is too long")


def _session(timeout_s: float) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, limit_per_host=_ASKED_A_POD),
        timeout=aiohttp.ClientTimeout(total=timeout_s),
        headers={"Content-Type": "application/json", "Accept-Encoding": "identity"},
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
    )


def _tokenize_request(prompt: Prompt, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """A body may have a field of another API too, so that the prompt tells which of them was read."""
    names: Sequence[str]
    text = body.get("prompt")
    if isinstance(text, str) and text.encode() == prompt.text:
        names = _COMPLETION
    elif isinstance(body.get("messages"), list) and MESSAGE in prompt.text:
        names = _CHAT
    else:
        return None
    return {name: body[name] for name in names if body.get(name) is not None}


class FileTokenizer:
    """A tokenizer.json, read with the `tokenizers` package, for prompts that are plain text.

    Chat templates are the engine's: a chat is not told by its messages' texts alone, so it is left to
    estimate. Raises PickerConfigError: the package is not installed, or the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        try:
            from tokenizers import Tokenizer  # noqa: PLC0415 - not installed where no file is configured
        except ImportError as error:
            raise PickerConfigError(
                "tokenization.path needs the package `tokenizers`; install it, or use mode Tokenize"
            ) from error
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:
            raise PickerConfigError(f"tokenization.path: {path} is not a tokenizer.json: {error}") from error

    @property
    def skipped_pods(self) -> int:
        """None: nobody is asked."""
        return 0

    def tokenize_request(self, prompt: Prompt, body: Mapping[str, Any]) -> bytes | None:
        """A completion's prompt, and whether the model wants tokens of its own at its beginning."""
        text = body.get("prompt")
        # a body may have a field of another API, that its own does not read
        if not isinstance(text, str) or text.encode() != prompt.text:
            return None
        return (_PLAIN if body.get("add_special_tokens", True) is False else _SPECIAL) + prompt.text

    async def tokenize(self, request: bytes) -> TokenIds | None:
        """Its tokens, found on a thread: a long text takes a while."""
        return await asyncio.to_thread(self._encode, request)

    def _encode(self, request: bytes) -> TokenIds:
        special = request[:1] == _SPECIAL
        return np.array(
            self._tokenizer.encode(request[1:].decode(), add_special_tokens=special).ids, np.uint32
        )

    async def close(self) -> None:
        """Holds nothing that needs closing."""
