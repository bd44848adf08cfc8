"""Whether a program can serve: what each kind is asked."""

from pathlib import Path
from typing import Final

from aiohttp import ClientError, ClientSession, ClientTimeout

_TIMEOUT_S: Final = 5.0
_OK: Final = 200
_CHECK: Final = "/grpc.health.v1.Health/Check"
# grpc.health.v1, as bytes: HealthCheckRequest{service: "readiness"}, HealthCheckResponse{status: SERVING}
_READINESS: Final = b"\x0a\x09readiness"
_SERVING: Final = b"\x08\x01"


async def envoy_is_ready(admin: Path) -> bool:
    """Whether Envoy, whose administration's address is in the file, says so."""
    try:
        address = admin.read_text(encoding="utf-8")  # noqa: ASYNC240 - a few bytes on this machine
    except FileNotFoundError:
        return False
    return await answers_ok(f"http://{address}/ready")


async def answers_ok(url: str) -> bool:
    """Whether there is an answer that says OK."""
    timeout = ClientTimeout(total=_TIMEOUT_S)
    try:
        async with (
            ClientSession(timeout=timeout) as session,
            session.get(url, allow_redirects=False) as answer,
        ):
            return answer.status == _OK
    except (ClientError, TimeoutError):
        return False


async def picker_is_ready(port: int) -> bool:
    """Whether the picker, whose health service listens on the port of loopback, says so."""
    import grpc.aio  # noqa: PLC0415 - only where there is a picker

    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            answer = await channel.unary_unary(_CHECK, bytes, bytes)(_READINESS, timeout=_TIMEOUT_S)
        except grpc.aio.AioRpcError:
            return False
        return answer == _SERVING
