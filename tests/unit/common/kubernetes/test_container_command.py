"""Programs that run in a container, by an API server that speaks v4.channel.k8s.io."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import WSMsgType, web
from kubernetes.aio.client import Configuration

from kvtier_common.errors import KvtierError, UnreachableError
from kvtier_common.kubernetes.answers import ForbiddenError
from kvtier_common.kubernetes.client import Api
from kvtier_common.kubernetes.container_command import Container, Ended, run_in_container

WHERE = Container("llm", "qwen-engine-0", "engine")
SUCCESS = {"status": "Success"}
FAILURE = {
    "status": "Failure",
    "reason": "NonZeroExitCode",
    "message": "command terminated with non-zero exit code",
    "details": {"causes": [{"reason": "ExitCode", "message": "3"}]},
}
Serve = Callable[[web.Request, web.WebSocketResponse], Awaitable[None]]


def run(serve: Serve, stdin: bytes = b"", limit_s: float = 20) -> Ended:
    async def answer(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await socket.prepare(request)
        await serve(request, socket)
        await socket.close()
        return socket

    return asyncio.run(asyncio.wait_for(_asked(answer, stdin, limit_s), 30))


async def _asked(
    answer: Callable[[web.Request], Awaitable[web.StreamResponse]], stdin: bytes, limit_s: float
) -> Ended:
    app = web.Application()
    app.router.add_get("/api/v1/namespaces/llm/pods/qwen-engine-0/exec", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    (host, port), *_ = runner.addresses
    try:
        async with Api(Configuration(host=f"http://{host}:{port}"), "test") as api:
            return await run_in_container(api, WHERE, ["python3", "-m", "it"], stdin, limit_s=limit_s)
    finally:
        await runner.cleanup()


def status(document: object) -> bytes:
    return b"\x03" + json.dumps(document).encode()


def test_what_a_program_wrote_and_how_it_ended() -> None:
    asked: dict[str, list[str]] = {}

    async def serve(request: web.Request, socket: web.WebSocketResponse) -> None:
        asked.update({name: request.query.getall(name) for name in request.query})
        for piece in (b"\x01one ", b"\x02trouble", b"\x01two", b"\x01", status(FAILURE)):
            await socket.send_bytes(piece)

    assert run(serve) == Ended(3, "one two", "trouble")
    assert asked["command"] == ["python3", "-m", "it"]
    assert (asked["container"], asked["stdin"]) == (["engine"], ["false"])


def test_a_program_reads_what_it_is_given_in_order() -> None:
    text = bytes(range(256)) * 1000
    read = bytearray()

    async def serve(_: web.Request, socket: web.WebSocketResponse) -> None:
        async for message in socket:
            assert message.type is WSMsgType.BINARY
            assert message.data[0] == 0
            read.extend(message.data[1:])
            if len(read) == len(text):
                break
        await socket.send_bytes(status(SUCCESS))

    assert run(serve, text) == Ended(0, "", "")
    assert bytes(read) == text


def test_a_connection_that_breaks_is_no_success() -> None:
    async def serve(_: web.Request, socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"\x01half")

    with pytest.raises(UnreachableError, match="ended before the program did"):
        run(serve)


def test_a_program_that_does_not_end_is_not_waited_for() -> None:
    async def serve(_: web.Request, socket: web.WebSocketResponse) -> None:
        async for _message in socket:
            pass

    with pytest.raises(UnreachableError, match="no end within"):
        run(serve, limit_s=0.2)


def test_a_program_that_cannot_be_run() -> None:
    async def serve(_: web.Request, socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(status({"status": "Failure", "message": 'exec: "python3": not found'}))

    with pytest.raises(UnreachableError, match='"python3": not found'):
        run(serve)


@pytest.mark.parametrize(("code", "error"), [(403, ForbiddenError), (500, KvtierError)])
def test_a_server_that_does_not_open_a_connection(code: int, error: type[KvtierError]) -> None:
    async def refuse(_: web.Request) -> web.StreamResponse:
        return web.json_response({"message": "no"}, status=code)

    with pytest.raises(error):
        asyncio.run(asyncio.wait_for(_asked(refuse, b"", 20), 30))
