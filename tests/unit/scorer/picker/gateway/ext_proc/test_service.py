"""Calls in which something goes wrong: the request gets an answer, and the log one line."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, TypeAlias

import grpc
import numpy as np
import pytest
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest
from tests.unit.scorer.picker.gateway.protocol import gateway
from tests.unit.scorer.picker.gateway.protocol.exchanges import BUFFERED, FULL_DUPLEX
from tests.unit.scorer.picker.gateway.protocol.gateway import answer, headers_of, kinds

from kvtier_scorer.errors import BudgetSpentError
from kvtier_scorer.picker.gateway.body_memory import BodyBudget
from kvtier_scorer.picker.gateway.ext_proc.calls import Call
from kvtier_scorer.picker.gateway.ext_proc.service import ExtProcService, RequestReader
from kvtier_scorer.picker.gateway.transport.server import GrpcServer, Limits
from kvtier_scorer.picker.observability.logs import LogRateLimiter
from kvtier_scorer.scheduling.model import Pick, PickRequest

LIMIT: Final = 1 << 20
_LIMITS: Final = Limits(message_bytes=2 * LIMIT, connections=8, calls=400)
Stream: TypeAlias = "grpc.aio.StreamStreamCall[bytes, bytes]"
GOOD = b'{"model": "m", "prompt": "a secret prompt"}'


class Picks:
    """Stands in for the scheduler: one pod, or a fault."""

    fault: Exception | None = None
    retain_s: float | None = None

    def pick(self, request: PickRequest, now_s: float) -> Pick:
        del now_s
        self.retain_s = request.retain_s
        if self.fault is not None:
            raise self.fault
        return Pick("10.0.0.7:8000", "pod", 0, np.empty(0, np.uint64), 1, {}, 1.0)

    def record_sent(self, pick: Pick) -> None:
        pass


class Service:
    """The service on a port, with a clock of its own and gRPC's client."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.picks = Picks()
        self.served = ExtProcService(
            scheduler=self.picks,  # type: ignore[arg-type]
            requests=RequestReader(None),
            clock=lambda: self.now_s,
            budget=BodyBudget(LIMIT, LIMIT, lambda: self.now_s),
            uploads=BodyBudget(2 * LIMIT, LIMIT, lambda: self.now_s),
            rate_limited_log=LogRateLimiter(logging.getLogger("picker"), 10, lambda: self.now_s),
            tells_endpoint=True,
        )
        self.server = GrpcServer(self.served.methods(), _LIMITS, "127.0.0.1", 0)
        self.channel: grpc.aio.Channel | None = None

    async def begin(
        self,
        *bodies: bytes,
        ended: bool = True,
        headers: Mapping[str, str] | None = None,
        mode: int = FULL_DUPLEX,
    ) -> Stream:
        """One call, its body in parts."""
        assert self.channel is not None
        [path] = self.served.methods()
        stream: Stream = self.channel.stream_stream(path)()
        await stream.write(gateway.request_headers(headers, mode=mode))
        for place, body in enumerate(bodies, 1):
            await stream.write(gateway.request_body(body, end_of_stream=ended and place == len(bodies)))
        return stream

    async def ask(self, *bodies: bytes, headers: Mapping[str, str] | None = None) -> list[bytes]:
        """All messages that a request is answered with, to the end of the call."""
        return await rest(await self.begin(*bodies, headers=headers))


async def rest(stream: Stream) -> list[bytes]:
    """What else is sent, after the gateway has said that it sends no more."""
    await stream.done_writing()
    messages: list[bytes] = []
    while isinstance(message := await stream.read(), bytes):
        messages.append(message)
    assert await stream.code() is grpc.StatusCode.OK
    return messages


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    started = Service()
    await started.server.start()
    # without probes a window stays at 64 KiB: what nobody reads is not on its way as a whole
    fixed = (("grpc.http2.bdp_probe", 0),)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{started.server.port}", fixed) as started.channel:
        yield started
    await started.server.drain(0)


def status(messages: list[bytes]) -> int:
    [message] = messages
    return int(answer(message).immediate_response.status.code)


async def test_a_fault_of_one_request_answers_it_and_is_one_line(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    service.picks.fault = ValueError("quotes a secret prompt")
    for _ in range(50):
        messages = await service.ask(GOOD)
        assert status(messages) == 500
        error = json.loads(answer(messages[0]).immediate_response.body)["error"]
        assert error["message"] == "internal error of the picker; its log says more"
    [line] = caplog.records
    assert line.levelno == logging.ERROR
    assert "ValueError at test_service.py:" in line.getMessage()
    assert "secret" not in caplog.text
    assert service.served.counters.refusals == {500: 50}
    service.picks.fault = None
    assert kinds(await service.ask(GOOD)) == ["request_headers", "request_body"]


async def test_hints_of_headers_are_the_bodys_and_the_picks(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for body in (GOOD, json.dumps({"model": "m", "prompt": "x" * 200_000}).encode()):
        told = await service.ask(body, headers={"x-kvtier-retain": "60", "x-kvtier-priority": "urgent"})
        parts = [
            answer(message).request_body.response.body_mutation.streamed_response for message in told[1:]
        ]
        text = b"".join(part.body for part in parts)
        assert json.loads(text) == {**json.loads(body), "kv_transfer_params": {"kvtier": {"retain": 60}}}
        common = answer(told[0]).request_headers.response
        assert set(common.header_mutation.remove_headers) == {"x-kvtier-retain", "x-kvtier-priority"}
        assert headers_of(told[0])["content-length"] == str(len(text))
        assert service.picks.retain_s == 60
    assert service.served.counters.hints == {("retain", "accepted"): 2, ("priority", "bad_value"): 2}
    [line] = caplog.records
    assert line.getMessage() == "a hint is dropped: x-kvtier-priority: must be low, normal or high"


async def test_a_header_that_is_there_twice_is_no_hint(service: Service) -> None:
    assert service.channel is not None
    [path] = service.served.methods()
    stream: Stream = service.channel.stream_stream(path)()
    head = ProcessingRequest.FromString(gateway.request_headers({"x-kvtier-share": "red"}))
    head.request_headers.headers.headers.add(key="x-kvtier-share", raw_value=b"blue")
    await stream.write(head.SerializeToString())
    await stream.write(gateway.request_body(GOOD))
    told = await rest(stream)
    assert answer(told[1]).request_body.response.body_mutation.streamed_response.body == GOOD
    assert service.served.counters.hints == {("share", "several_values"): 1}


async def test_what_clients_do_wrong_is_one_line_a_kind(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for _ in range(20):
        assert status(await service.ask(b"{")) == 400
        assert status(await service.ask(b'{"model": "m"}')) == 400
        assert status(await service.ask(bytes(LIMIT + 1))) == 413
    service.now_s = 11
    await service.ask(b"{")
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 4
    assert lines[3].endswith("(and 19 times more since this was last told)")


async def test_who_holds_most_for_longest_is_refused_for_the_others(service: Service) -> None:
    slow = await service.begin(bytes(LIMIT), ended=False)
    await held(service, LIMIT)
    service.now_s = 1
    assert kinds(await service.ask(GOOD)) == ["request_headers", "request_body"]
    assert status(await rest(slow)) == 503
    assert service.served.budget.held_bytes == 0


async def test_an_answer_that_nobody_reads_gives_way_too(service: Service) -> None:
    assert service.channel is not None
    body = json.dumps({"model": "m", "prompt": "x" * (LIMIT - 40)}).encode()
    unread = await service.begin(body)
    assert kinds([await unread.read()]) == ["request_headers"]  # type: ignore[list-item]
    service.now_s = 1
    assert kinds(await service.ask(GOOD)) == ["request_headers", "request_body"]
    assert len(await rest(unread)) < len(body) // 62_000
    assert service.served.budget.held_bytes == 0


class Slow:
    """Stands in for a call of grpcio's: its request is there, and its answer is not taken."""

    def __init__(self, *messages: bytes) -> None:
        self._messages = iter(messages)
        self.beginning, self.begun = asyncio.Event(), asyncio.Event()
        self.writing, self.taken = asyncio.Event(), asyncio.Event()
        self.written: list[bytes] = []

    async def read(self) -> object:
        return next(self._messages, grpc.aio.EOF)

    async def send_initial_metadata(self, _: object) -> None:
        self.beginning.set()
        await self.begun.wait()

    async def write(self, message: bytes) -> None:
        self.writing.set()
        await self.taken.wait()
        self.written.append(message)


def slow_call(service: Service, body: bytes) -> tuple[Any, "asyncio.Task[None]"]:
    slow: Any = Slow(gateway.request_headers(None), gateway.request_body(body, end_of_stream=True))
    return slow, asyncio.create_task(Call(service.served, slow).run())


async def test_an_answer_that_begins_is_not_cut_off(service: Service) -> None:
    """grpcio would send the head of the answer again, with the end of the call, and log a traceback."""
    slow, running = slow_call(service, b'{"model": "m", "prompt": "%b"}' % (b"x" * (LIMIT - 100)))
    await slow.beginning.wait()
    service.now_s, others = 1, service.served.budget.share()
    with pytest.raises(BudgetSpentError):
        others.take(LIMIT)
    slow.begun.set()
    await slow.writing.wait()
    others.take(LIMIT)
    await running


async def test_a_short_answer_that_begins_ends_behind_its_first_message(service: Service) -> None:
    slow, running = slow_call(service, GOOD)
    await slow.writing.wait()
    service.now_s = 1
    service.served.budget.share().take(LIMIT)
    await asyncio.sleep(0)
    assert not running.done()
    slow.taken.set()
    await running
    assert kinds(slow.written) == ["request_headers"]


async def test_an_upload_gives_way_after_its_headers_were_passed(service: Service) -> None:
    stream = await service.begin(ended=False, mode=BUFFERED)
    assert await stream.read() != grpc.aio.EOF
    service.now_s = 1
    service.served.uploads.share().take(LIMIT)
    service.served.uploads.share().take(LIMIT)
    assert status(await rest(stream)) == 503


async def test_calls_give_back_what_they_held(service: Service) -> None:
    gone = await service.begin(b"x", ended=False)
    await held(service, 1)
    gone.cancel()
    await held(service, 0)
    for body in (GOOD, b"{", b'{"model": 1, "prompt": ""}'):
        await service.ask(body)
    assert service.served.budget.held_bytes == 0


async def held(service: Service, size_bytes: int) -> None:
    """Return when so much is held."""
    # the server runs on this loop: whatever has to come, comes while others wait
    while service.served.budget.held_bytes != size_bytes:  # noqa: ASYNC110
        await asyncio.sleep(0)


async def test_what_clients_choose_is_visible_and_short_in_the_log(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "kvtier_scorer")
    body: dict[str, Any] = {"model": "m\n\x1b[2J" + "x" * 500, "prompt": "a secret prompt"}
    await service.ask(
        json.dumps(body).encode(), headers={"x-request-id": "1\nforged", "authorization": "Bearer t"}
    )
    [line] = [record for record in caplog.records if record.name.startswith("kvtier_scorer")]
    assert line.getMessage() == "request 1\\nforged goes to pod"
    told = vars(line)
    assert told["request_id"] == "1\\nforged"
    assert told["model"].startswith("m\\n\\x1b[2Jxxx")
    assert len(told["model"]) < 80
    assert not any(secret in repr(told) for secret in ("secret", "Bearer"))


async def test_a_large_body_is_read_beside_the_loop_and_picked_for(service: Service) -> None:
    messages = await service.ask(json.dumps({"model": "m", "prompt": "word " * 50_000}).encode())
    assert kinds(messages)[0] == "request_headers"
    assert service.served.budget.held_bytes == 0
