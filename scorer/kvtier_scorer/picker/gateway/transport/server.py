"""A port that serves gRPC, with grpcio's server."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import grpc

from kvtier_scorer.picker.gateway.transport.limits import Limits
from kvtier_scorer.picker.gateway.transport.thread_priority import prefer_event_loop

Methods: TypeAlias = Mapping[str, "grpc.RpcMethodHandler[bytes, bytes]"]
"""By path, such as `/grpc.health.v1.Health/Check`."""
Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
"""Of one call, which is given bytes and gives bytes."""
_EVERY_ADDRESS: Final = "[::]"


class GrpcServer:
    """One listening port.

    Args:
        methods: What clients may call.
        limits: What they may make it do.
        host: Address to listen at; empty for every one, of both protocols.
        port: 0 for any that is free.
        credentials: Certificate and key; None to serve in the clear.

    Attributes:
        port: The port it listens at, once it does.
    """

    def __init__(
        self,
        methods: Methods,
        limits: Limits,
        host: str,
        port: int,
        credentials: grpc.ServerCredentials | None = None,
    ) -> None:
        self.port = port
        self._host = host
        self._credentials = credentials
        self._server = grpc.aio.server(
            handlers=(_ByPath(methods),), options=limits.options(), maximum_concurrent_rpcs=limits.calls
        )

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: The address cannot be had.
        """
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
