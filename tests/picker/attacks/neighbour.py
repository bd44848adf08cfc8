"""A client that does nothing wrong: 30 picks a second, whatever became of those before.

python -m tests.picker.attacks.neighbour --address 127.0.0.1:9002
each line of standard input: how the picks went that began since the last one, when all of them have ended
"""

import asyncio
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import aiohttp
import click
import grpc
from tests.picker.attacks.child import Child, say
from tests.unit.scorer.picker.gateway.protocol.gateway import request_body, request_headers

PROCESS: Final = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"
EVERY_S: Final = 1 / 30
DEADLINE_S: Final = 5.0
_PROMPT: Final = b"once upon a time " * 240
_BODY: Final = b'{"model": "fake", "prompt": "%b"}' % _PROMPT
_JSON: Final = {"content-type": "application/json"}
_REQUEST: Final = (request_headers({":path": "/v1/completions"}), request_body(_BODY))
_OPTIONS: Final = (("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 500))
_Process: TypeAlias = "grpc.aio.StreamStreamMultiCallable[bytes, bytes]"


@dataclass(slots=True)
class Report:
    """How picks went.

    Attributes:
        took_s: Of those that were answered, in the order of their ends.
        failed: Of the others, by status; DEADLINE_EXCEEDED without an answer in time.
    """

    took_s: list[float] = field(default_factory=list, repr=False)
    failed: Counter[str] = field(default_factory=Counter)

    @property
    def timeouts(self) -> int:
        """Picks without an answer in time."""
        return self.failed["DEADLINE_EXCEEDED"]

    def quantile_s(self, share: float) -> float:
        """The time within which this share of all picks was answered, failed ones taking the deadline."""
        took = sorted([*self.took_s, *[DEADLINE_S] * self.failed.total()])
        return took[min(len(took) - 1, int(share * len(took)))] if took else DEADLINE_S


def report(neighbour: Child) -> Report:
    """What became of the picks that began since the last report, when all have ended."""
    neighbour.tell("report")
    told = neighbour.said()
    return Report(told["took_s"], Counter(told["failed"]))


class _Neighbour:
    """The client itself, in its process."""

    def __init__(self, address: str, *, new_connections: bool, deadline_s: float) -> None:
        self._address = address
        self._deadline_s = deadline_s
        self._new = new_connections
        self._channel = self._connect()
        self._report = Report()
        self._open: set[asyncio.Task[None]] = set()

    def _connect(self) -> grpc.aio.Channel:
        # a channel of its own sub-channels: one with equal options would share another's connection
        options = [*_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
        return grpc.aio.insecure_channel(self._address, options=options)

    async def go_on(self) -> None:
        """Picks, until cancelled."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            task = loop.create_task(self._pick(self._report))
            self._open.add(task)
            task.add_done_callback(self._open.discard)
            due = max(due + EVERY_S, loop.time() - 1.0)
            await asyncio.sleep(max(0.0, due - loop.time()))

    async def close(self) -> None:
        """Ends its connections."""
        await self._channel.close()

    async def obey(self) -> None:
        """Does what its standard input says, until that ends."""
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, sys.stdin.readline):
            done, self._report = self._report, Report()
            if self._open:
                await asyncio.wait(set(self._open))
            say({"took_s": done.took_s, "failed": done.failed})

    async def _pick(self, report: Report) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        channel = self._connect() if self._new else self._channel
        try:
            process: _Process = channel.stream_stream(PROCESS)
            call = process(iter(_REQUEST), timeout=self._deadline_s, wait_for_ready=True)
            if await call.read() == grpc.aio.EOF:
                report.failed[(await call.code()).name] += 1
            else:
                report.took_s.append(loop.time() - began)
            call.cancel()
        except grpc.aio.AioRpcError as error:
            report.failed[error.code().name] += 1
        finally:
            if self._new:
                await channel.close()


class _GatewaysNeighbour(_Neighbour):
    """The same of a gateway, over HTTP."""

    def __init__(self, address: str, *, new_connections: bool, deadline_s: float) -> None:
        super().__init__(address, new_connections=new_connections, deadline_s=deadline_s)
        self._url = f"http://{address}/v1/completions"
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(deadline_s))

    async def close(self) -> None:
        await self._session.close()

    async def _pick(self, report: Report) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with self._session.post(self._url, data=_BODY, headers=_JSON) as response:
                await response.read()
        except TimeoutError:
            report.failed["DEADLINE_EXCEEDED"] += 1
        except aiohttp.ClientError as error:
            report.failed[type(error).__name__] += 1
        else:
            if response.ok:
                report.took_s.append(loop.time() - began)
            else:
                report.failed[str(response.status)] += 1


async def _run(address: str, *, new_connections: bool, gateway: bool, deadline_s: float) -> None:
    kind = _GatewaysNeighbour if gateway else _Neighbour
    neighbour = kind(address, new_connections=new_connections, deadline_s=deadline_s)
    picks = asyncio.create_task(neighbour.go_on())
    say("ready")
    await neighbour.obey()
    picks.cancel()
    await neighbour.close()


@click.command()
@click.option("--address", required=True)
@click.option("--new-connections", is_flag=True, help="A connection for each pick.")
@click.option("--gateway", is_flag=True, help="It is a gateway's: complete a prompt in place of a pick.")
@click.option("--deadline-s", type=float, default=DEADLINE_S, help="Of a pick.")
def main(address: str, *, new_connections: bool, gateway: bool, deadline_s: float) -> None:
    """Pick 30 times a second until standard input ends."""
    asyncio.run(_run(address, new_connections=new_connections, gateway=gateway, deadline_s=deadline_s))


if __name__ == "__main__":
    main()
