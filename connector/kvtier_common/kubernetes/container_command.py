"""Runs a program in a container of a pod, through the API server's `pods/exec`.

The protocol is v4.channel.k8s.io: each message begins with its channel, and standard input has no end, so
that a program has to know how much to read. Source: k8s.io/apimachinery, pkg/util/remotecommand.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import ClientError, ClientWebSocketResponse, WSMsgType

from kvtier_common.errors import TooLargeError, UnreachableError
from kvtier_common.kubernetes.answers import Document, as_object, parse_document
from kvtier_common.kubernetes.client import Api

_PROTOCOL: Final = "v4.channel.k8s.io"
_STDIN, _STDOUT, _STDERR, _STATUS = range(4)
_PIECE_BYTES: Final = 32 << 10
"""Of standard input in a message."""
_MOST_BYTES: Final = 4 << 20
"""Of what a program writes."""


@dataclass(frozen=True, slots=True)
class Container:
    """One container of a pod."""

    namespace: str
    pod: str
    name: str


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a program."""

    exit_code: int
    output: str  # what it wrote to standard output
    errors: str  # what it wrote to standard error


async def run_in_container(
    api: Api, container: Container, command: Sequence[str], stdin: bytes = b"", *, limit_s: float
) -> Ended:
    """Run a program to its end.

    Args:
        api: The API server.
        container: Where it runs.
        command: The program and its arguments.
        stdin: What it can read.
        limit_s: How long it may take; what goes on after that goes on without us.

    Raises:
        KvtierError: As of `Api.request`: no right, no such pod. UnreachableError also where it does
            not end in time, TooLargeError where it writes too much.
    """
    query = [
        ("container", container.name),
        *(("command", word) for word in command),
        ("stdin", str(bool(stdin)).lower()),
        ("stdout", "true"),
        ("stderr", "true"),
    ]
    path = f"/api/v1/namespaces/{container.namespace}/pods/{container.pod}/exec"

    async def run() -> Ended:
        async with api.socket(path, query, _PROTOCOL) as socket:
            return await _talk(socket, stdin)

    try:
        return await asyncio.wait_for(run(), limit_s)
    except (asyncio.TimeoutError, TimeoutError) as error:  # two classes before Python 3.11
        raise UnreachableError(f"{container.pod}: no end within {limit_s:.0f} s") from error
    except (ClientError, OSError) as error:
        raise UnreachableError(f"{container.pod}: the connection broke: {error}") from error


async def _talk(socket: ClientWebSocketResponse, stdin: bytes) -> Ended:
    """Send and read at once: a program that writes before it has read everything waits for nobody."""
    sending = asyncio.create_task(_send(socket, stdin))
    try:
        return await _read(socket)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _send(socket: ClientWebSocketResponse, stdin: bytes) -> None:
    for begin in range(0, len(stdin), _PIECE_BYTES):
        await socket.send_bytes(bytes([_STDIN]) + stdin[begin : begin + _PIECE_BYTES])


async def _read(socket: ClientWebSocketResponse) -> Ended:
    written: dict[int, bytearray] = {_STDOUT: bytearray(), _STDERR: bytearray(), _STATUS: bytearray()}
    async for message in socket:
        content = message.data.encode() if message.type is WSMsgType.TEXT else message.data
        if not content or content[0] not in written:
            continue
        written[content[0]] += content[1:]
        if sum(map(len, written.values())) > _MOST_BYTES:
            raise TooLargeError(f"it writes more than {_MOST_BYTES >> 20} MiB")
    output, errors = (bytes(written[channel]).decode(errors="replace") for channel in (_STDOUT, _STDERR))
    if not written[_STATUS]:
        raise UnreachableError("the connection ended before the program did")
    return Ended(_exit_code(parse_document(bytes(written[_STATUS]))), output, errors)


def _exit_code(status: Document) -> int:
    """Of a metav1.Status (k8s.io/kubelet, pkg/cri/streaming/remotecommand: reason NonZeroExitCode)."""
    if status.get("status") == "Success":
        return 0
    causes = as_object(status.get("details") or {}).get("causes")
    for cause in causes if isinstance(causes, list) else []:
        text = str(as_object(cause).get("message"))
        if as_object(cause).get("reason") == "ExitCode" and text.isdigit():
            return int(text)
    raise UnreachableError(str(status.get("message") or "the program could not be run"))
