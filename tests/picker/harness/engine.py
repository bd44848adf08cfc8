"""A stand-in for vLLM that answers at once: completions, `/metrics` and `/health`, and nothing of a model.

It speaks HTTP/1.1 by itself because thousands of answers a second come from it while a picker is measured.
"""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

ENGINE: Final = b"x-engine"
"""Header of an answer that names the engine: its `ip:port`."""
_HELD_S: Final = 30.0
_END: Final = b"\r\n\r\n"
_ANSWER: Final = (
    b'{"id":"cmpl-1","object":"chat.completion","created":0,"model":"fake","choices":[{"index":0,'
    b'"message":{"role":"assistant","content":"ok"},"text":"ok","finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}'
)
_REASONS: Final = {200: b"OK", 404: b"Not Found", 500: b"Internal Server Error", 503: b"Service Unavailable"}


@dataclass(slots=True)
class Engine:
    """What one engine reports and does; a test changes it while it runs.

    Attributes:
        address: `ip:port`.
        waiting: Requests that it says are queued.
        running: Requests that it says are running.
        kv_cache_usage: Share of its KV cache that it says is in use, 0 to 1.
        num_gpu_blocks: Blocks of its device cache.
        block_size: Tokens in a block.
        more_metrics: Lines after its own metrics.
        metrics: What /metrics says instead of all this; None for metrics as vLLM's.
        status: Of its answers.
        delay_s: From a request's end to its answer.
        held: Answers wait until this is set; None to answer at once.
        served: Requests answered, without those for metrics and health.
        scraped: Requests for metrics.
        bodies: Takes each request's path and body; None to forget them.
        heads: Takes each request's first line and headers; None to forget them.
    """

    address: str
    waiting: int = 0
    running: int = 0
    kv_cache_usage: float = 0.0
    num_gpu_blocks: int = 4096
    block_size: int = 16
    more_metrics: str = ""
    metrics: bytes | None = None
    status: int = 200
    delay_s: float = 0.0
    held: threading.Event | None = None
    served: int = 0
    scraped: int = 0
    bodies: Callable[[str, bytes], None] | None = None
    heads: Callable[[bytes], None] | None = None

    def exposition(self) -> bytes:
        """Its metrics as vLLM 0.33 writes them, those that pickers read."""
        if self.metrics is not None:
            return self.metrics
        one = 'model_name="fake",engine="0"'
        return (
            "# TYPE vllm:num_requests_running gauge\n"
            f"vllm:num_requests_running{{{one}}} {self.running}.0\n"
            "# TYPE vllm:num_requests_waiting gauge\n"
            f"vllm:num_requests_waiting{{{one}}} {self.waiting}.0\n"
            "# TYPE vllm:kv_cache_usage_perc gauge\n"
            f"vllm:kv_cache_usage_perc{{{one}}} {self.kv_cache_usage}\n"
            "# TYPE vllm:lora_requests_info gauge\n"
            'vllm:lora_requests_info{max_lora="0",running_lora_adapters="",waiting_lora_adapters=""} 1.0\n'
            "# TYPE vllm:cache_config_info gauge\n"
            f'vllm:cache_config_info{{block_size="{self.block_size}",cache_dtype="auto",engine="0",'
            f'num_gpu_blocks="{self.num_gpu_blocks}"}} 1.0\n'
            f"{self.more_metrics}"
        ).encode()


class EngineProtocol(asyncio.Protocol):
    """One connection to an engine: requests one after another, kept alive."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._request = _Request()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The server's end is a plain transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answers every request that is complete."""
        self._received += data
        while self._request.take(self._received):
            done, self._request = self._request, _Request()
            self._answer(done)

    def _answer(self, request: "_Request") -> None:
        engine = self._engine
        if request.path == "/metrics":
            engine.scraped += 1
            self._write(200, b"text/plain; version=0.0.4", engine.exposition())
        elif request.path == "/health":
            self._write(engine.status, b"text/plain", b"")
        else:
            if engine.heads is not None:
                engine.heads(request.head)
            if engine.bodies is not None:
                engine.bodies(request.path, bytes(request.body))
            if engine.held is not None:
                waiting = asyncio.get_running_loop().run_in_executor(None, engine.held.wait, _HELD_S)
                waiting.add_done_callback(lambda _: self._complete())
            elif engine.delay_s:
                asyncio.get_running_loop().call_later(engine.delay_s, self._complete)
            else:
                self._complete()

    def _complete(self) -> None:
        self._engine.served += 1
        self._write(self._engine.status, b"application/json", _ANSWER)

    def _write(self, status: int, content_type: bytes, body: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        head = b"HTTP/1.1 %d %b\r\ncontent-type: %b\r\ncontent-length: %d\r\n%b: %b\r\n\r\n" % (
            status,
            _REASONS.get(status, b"Other"),
            content_type,
            len(body),
            ENGINE,
            self._engine.address.encode(),
        )
        self._transport.write(head + body)


@dataclass(slots=True)
class _Request:
    """A request as far as it has come. Envoy sends bodies in chunks where a filter may change them."""

    path: str = ""
    head: bytes = b""
    body: bytearray = field(default_factory=bytearray)
    _left: int = 0
    _chunked: bool = False

    def take(self, received: bytearray) -> bool:
        """Takes what belongs to this request from the front; whether it is complete."""
        if not self.path and not self._take_head(received):
            return False
        return self._take_chunks(received) if self._chunked else self._take_body(received)

    def _take_head(self, received: bytearray) -> bool:
        if (end := received.find(_END)) < 0:
            return False
        self.head = bytes(received[:end])
        first, *lines = self.head.split(b"\r\n")
        del received[: end + len(_END)]
        self.path = first.split(b" ")[1].decode()
        for line in lines:
            name, _, value = line.partition(b":")
            match name.lower():
                case b"content-length":
                    self._left = int(value)
                case b"transfer-encoding":
                    self._chunked = True
        return True

    def _take_body(self, received: bytearray) -> bool:
        if len(received) < self._left:
            return False
        self.body += received[: self._left]
        del received[: self._left]
        return True

    def _take_chunks(self, received: bytearray) -> bool:
        while (end := received.find(b"\r\n")) >= 0:
            size = int(bytes(received[:end]).partition(b";")[0], 16)
            after = end + 2 + size + 2
            if len(received) < after:
                return False
            self.body += received[end + 2 : end + 2 + size]
            del received[:after]
            if size == 0:
                return True
        return False
