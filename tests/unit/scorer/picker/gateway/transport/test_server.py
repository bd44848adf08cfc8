"""What grpcio's server writes to the log while it serves the picker's calls."""

import asyncio
import logging
from typing import Any

import grpc
import pytest
from grpc._cython import cygrpc  # type: ignore[attr-defined]

from kvtier_scorer.picker.gateway.transport.server import Context, GrpcServer, Limits, Methods

PATH = "/kvtier.test/Call"
GONE = cygrpc.ExecuteBatchError('Failed "execute_batch": (<SendMessageOperation object>,)')
OTHER = cygrpc.ExecuteBatchError("Failed grpc_call_start_batch: 8")


async def called(error: Exception) -> None:
    """A call whose handler ends as it does where grpcio cannot send, for this reason."""
    ended = asyncio.Event()

    async def handler(_: object, context: Context) -> None:
        await context.write(b"begun")
        ended.set()
        raise error

    methods: Methods = {PATH: grpc.stream_stream_rpc_method_handler(handler)}
    server = GrpcServer(methods, Limits(1 << 16, 8, 8), "127.0.0.1", 0)
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call: Any = channel.stream_stream(PATH)()
        assert await call.read() == b"begun"
        await ended.wait()  # the server cancels a handler that has not ended, and then nothing is written
    await server.drain(0.0)


@pytest.mark.parametrize(
    ("level", "lines"),
    [
        (logging.INFO, []),
        (logging.DEBUG, ["ExecuteBatchError raised in core by servicer method [/kvtier.test/Call]"]),
    ],
)
async def test_a_client_that_is_gone_is_a_line_for_debug(
    caplog: pytest.LogCaptureFixture, level: int, lines: list[str]
) -> None:
    caplog.set_level(level, "grpc._cython.cygrpc")
    await called(GONE)
    assert [record.message for record in caplog.records if "ExecuteBatchError" in record.message] == lines
    assert not [
        record
        for record in caplog.records
        if (record.exc_info or record.exc_text) and record.name != "asyncio"
    ]


@pytest.mark.parametrize("error", [OTHER, ValueError("of ours")])
async def test_any_other_fault_has_its_traceback(caplog: pytest.LogCaptureFixture, error: Exception) -> None:
    await called(error)
    [record] = [
        record
        for record in caplog.records
        if (record.exc_info or record.exc_text) and record.name != "asyncio"
    ]
    assert record.levelno == logging.ERROR
    assert str(error) in caplog.text
