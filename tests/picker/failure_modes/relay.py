"""A TCP relay before a picker that can keep its answers back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from kvtier_operator.planning.envoy.gateway import Address
from kvtier_operator.runtime.process import LOOPBACK

_CHUNK_BYTES = 1 << 16


@dataclass
class Relay:
    """Hands on what comes, and answers only while `flowing` is set.

    Attributes:
        picker: Where it leads.
        flowing: Whether answers are handed on.
        asked: Is set when something arrives for the picker.
    """

    picker: Address
    flowing: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of Envoy's, to its end."""
        with suppress(OSError):
            upstream, to_picker = await asyncio.open_connection(self.picker.host, self.picker.port)
            both = [self._questions(reader, to_picker), self._answers(upstream, writer)]
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*both)
            to_picker.close()
        writer.close()

    async def _questions(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK_BYTES):
            self.asked.set()
            writer.write(data)
            await writer.drain()
        writer.close()

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK_BYTES):
            await self.flowing.wait()
            writer.write(data)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def running_relay(picker: Address) -> AsyncIterator[tuple[Relay, Address]]:
    """A relay to the picker, and its own address; it hands answers on."""
    relay = Relay(picker)
    relay.flowing.set()
    server = await asyncio.start_server(relay.serve, LOOPBACK, 0)
    try:
        yield relay, Address(LOOPBACK, server.sockets[0].getsockname()[1])
    finally:
        relay.flowing.set()
        server.close()
