"""Whom tests and operators are to the API server of trouble."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kubernetes import client
from tests.cluster.chaos.proxy import Proxy, running_proxy
from tests.cluster.harness.api.connection import Connection, connect
from tests.cluster.harness.stand_ins.gateway_controller import running_gateway_controller


@dataclass(frozen=True, slots=True)
class Stage:
    """Their connections' settings."""

    administrator: client.Configuration
    operator: client.Configuration

    @asynccontextmanager
    async def up(self) -> AsyncIterator[tuple[Connection, Proxy]]:
        """An administrator's connection, routes that are answered, and the way that an operator takes."""
        async with (
            connect(self.administrator) as connection,
            running_gateway_controller(connection),
            running_proxy(self.operator) as proxy,
        ):
            yield connection, proxy
