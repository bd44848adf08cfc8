"""Windows that a client makes larger while answers are on their way."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Final, TypeAlias

import grpc
import pytest
from tests.picker.attacks.attackers.blocks import opened
from tests.picker.attacks.attackers.bodies import chunks_of
from tests.picker.attacks.attackers.wire import (
    ACK,
    DATA,
    INITIAL_WINDOW_SIZE,
    PREFACE,
    SETTINGS,
    frame,
    settings,
)
from tests.picker.attacks.neighbour import PROCESS
from tests.picker.attacks.rendered import rendered
from tests.picker.harness.fleet import Fleet
from tests.picker.harness.pickers.own import Own, OwnStart, running_own
from tests.unit.scorer.picker.gateway.protocol.gateway import answer, request_body, request_headers

_SIZE: Final = 6 << 20
_TIMEOUT_S: Final = 60.0
_SMALL, _LARGE = 1_000, 50_000
_Process: TypeAlias = "grpc.aio.StreamStreamMultiCallable[bytes, bytes]"


@pytest.fixture(scope="module")
def own(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Own]:
    with running_own(OwnStart(rendered().config), fleet.pods, tmp_path_factory.mktemp("picker")) as own:
        yield own


async def test_grpcs_own_client_resets_no_large_call(own: Own) -> None:
    """It raises INITIAL_WINDOW_SIZE as it learns how fast the connection is."""
    body = b'{"model":"fake","prompt":"%b"}' % (b"x" * _SIZE)
    options = [("grpc.max_receive_message_length", -1)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{own.port}", options=options) as channel:
        process: _Process = channel.stream_stream(PROCESS)

        async def messages() -> AsyncIterator[bytes]:
            yield request_headers()
            for chunk in chunks_of(body):
                yield chunk

        async def echoed() -> int:
            size = 0
            async for message in process(messages(), timeout=_TIMEOUT_S):
                told = answer(message)
                size += len(told.request_body.response.body_mutation.streamed_response.body)
            return size

        assert await asyncio.gather(*(echoed() for _ in range(6))) == [len(body)] * 6


async def test_a_larger_window_is_used_after_it_is_acknowledged(own: Own) -> None:
    body = request_body(b'{"model":"fake","prompt":"%b"}' % (b"x" * 12_000))
    messages = b"".join(b"\0" + len(each).to_bytes(4, "big") + each for each in (request_headers(), body))
    reader, writer = await asyncio.open_connection("127.0.0.1", own.port)
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            writer.write(PREFACE + settings({INITIAL_WINDOW_SIZE: _SMALL}))
            writer.write(opened(1) + frame(DATA, 0, 1, messages))
            sent, acknowledged = 0, 0
            while sent < _SMALL:
                kind, flags, size = await _frame(reader)
                sent += size if kind == DATA else 0
                acknowledged += kind == SETTINGS and flags == ACK
                if kind == SETTINGS and flags != ACK:
                    writer.write(frame(SETTINGS, ACK, 0))
            assert sent == _SMALL
            writer.write(settings({INITIAL_WINDOW_SIZE: _LARGE}))
            while sent < len(body):
                kind, flags, size = await _frame(reader)
                acknowledged += kind == SETTINGS and flags == ACK
                assert kind != DATA or acknowledged == 2
                sent += size if kind == DATA else 0
    finally:
        writer.close()


async def _frame(reader: asyncio.StreamReader) -> tuple[int, int, int]:
    """Kind, flags and size of the next frame."""
    head = await reader.readexactly(9)
    size = int.from_bytes(head[:3], "big")
    await reader.readexactly(size)
    return head[3], head[4], size
