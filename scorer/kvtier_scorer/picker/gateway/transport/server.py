"""A port that serves gRPC, with grpcio's server: its threads, and what that writes to the log."""

import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

import grpc

from kvtier_scorer.picker.gateway.transport.limits import Limits

Methods: TypeAlias = Mapping[str, "grpc.RpcMethodHandler[bytes, bytes]"]
"""By path, such as `/grpc.health.v1.Health/Check`."""
Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
"""Of one call, which is given bytes and gives bytes."""
_EVERY_ADDRESS: Final = "[::]"
_TASKS: Final = Path("/proc/self/task")
POOL: Final = frozenset({"event_engine", "lifeguard"})
"""The C core's pool of threads: each frame of a rapid reset is a piece of work for it. The lifeguard starts
further ones, which inherit its niceness. What a well-behaved gateway sends is taken by another thread."""
NICE: Final = 19
"""Some 70 times less of a processor than the loop, where both want it. In a cluster this is among the threads
of one container: containers share by their requests."""
_GRPC_LOG: Final = logging.getLogger("grpc._cython.cygrpc")
_CANNOT_SEND: Final = 'Failed "execute_batch"'


def prefer_event_loop() -> None:
    """Make the C core's pool nicer than everything else of this process; its threads must have started."""
    for task in _TASKS.iterdir():
        with suppress(OSError):  # it has ended
            if (task / "comm").read_text().strip() in POOL:
                os.setpriority(os.PRIO_PROCESS, int(task.name), NICE)


def _is_told(record: logging.LogRecord) -> bool:
    """Whether a record of grpcio's goes on: a client that is gone while it is answered is a line for debug.

    grpcio writes a traceback where the answer fails before it knows that the client is gone.
    """
    error = record.exc_info[1] if record.exc_info else None
    if not isinstance(error, grpc.aio.InternalError) or not str(error).startswith(_CANNOT_SEND):
        return True
    record.levelno, record.levelname, record.exc_info = logging.DEBUG, "DEBUG", None
    return _GRPC_LOG.isEnabledFor(logging.DEBUG)


class GrpcServer:
    """One listening port, which clients may call; an empty host is every address, of both protocols."""

    def __init__(
        self,
        methods: Methods,
        limits: Limits,
        host: str,
        port: int,
        credentials: grpc.ServerCredentials | None = None,
    ) -> None:
        self.port = port  # the port it listens at, once it does
        self._host = host
        self._credentials = credentials
        _GRPC_LOG.addFilter(_is_told)
        self._server = grpc.aio.server(
            handlers=(_ByPath(methods),), options=limits.options(), maximum_concurrent_rpcs=limits.calls
        )

    async def start(self) -> None:
        """Listen. Raises OSError: the address cannot be had."""
        host = f"[{self._host}]" if ":" in self._host else self._host or _EVERY_ADDRESS
        address = f"{host}:{self.port}"
        try:
            if self._credentials is None:
                self.port = self._server.add_insecure_port(address)
            else:
                self.port = self._server.add_secure_port(address, self._credentials)
        except RuntimeError as error:
            raise OSError(f"{address} is taken, or not an address of this machine") from error
        await self._server.start()
        prefer_event_loop()

    async def drain(self, grace_s: float) -> None:
        """Take no more clients or calls, ask those there are to go, and close when their calls have ended.

        Args:
            grace_s: How long calls may go on; what is still open then is cut off.
        """
        await self._server.stop(grace_s)


class _ByPath(grpc.GenericRpcHandler):
    def __init__(self, methods: Methods) -> None:
        self._methods = methods

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:  # noqa: ANN401 - as grpcio's stubs have it
        return self._methods.get(handler_call_details.method)
