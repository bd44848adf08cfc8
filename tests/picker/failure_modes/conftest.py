"""A local gateway as `kvtier run` starts it, with the real Envoy and the real picker, before tiny engines."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientSession
from tests.picker.failure_modes.engines import Served, running_engines
from tests.picker.failure_modes.relay import Relay, running_relay

from kvtier_common.tier import Tier
from kvtier_operator.api.spec.router import FailureMode
from kvtier_operator.planning.envoy.gateway import Address
from kvtier_operator.runtime.gateway import LocalGateway, Routing
from kvtier_operator.runtime.process import LOOPBACK, free_ports
from kvtier_scorer.config.flavors import picker_config
from kvtier_scorer.config.model import PickerInput, ScorerWeights, TierTokens

PROMPT = "All engines have read this. " * 2_000


class Client:
    """Asks a gateway."""

    def __init__(self, session: ClientSession, url: str) -> None:
        self._session, self._url = session, url

    async def ask(self, prompt: str = PROMPT, **headers: str) -> tuple[int, Served | None]:
        """Status of a completion and, if it is 200, who served it."""
        body = json.dumps({"model": "test/tiny", "prompt": prompt, "max_tokens": 1}).encode()
        sent = {"Content-Type": "application/json", **headers}
        async with self._session.post(f"{self._url}/v1/completions", data=body, headers=sent) as answer:
            if not answer.ok:
                return answer.status, None
            served = Served(**await answer.json())
            assert served.body_bytes == len(body)
            return answer.status, served

    async def picked(self) -> str:
        """The engine that served a request, which the picker must have chosen."""
        status, served = await self.ask()
        assert status == 200
        assert served is not None
        assert served.picked == served.engine
        return served.engine

    async def get(self, path: str) -> int:
        """Status of a GET."""
        async with self._session.get(f"{self._url}{path}") as answer:
            return answer.status


class Relayed(LocalGateway):
    """The same with something between Envoy and the picker."""

    relay_address: Address | None = None

    @property
    def picker_address(self) -> Address | None:
        return self.relay_address or super().picker_address


StartGateway = Callable[[FailureMode], AbstractAsyncContextManager[tuple[LocalGateway, Client]]]
StartRelayed = Callable[[FailureMode], AbstractAsyncContextManager[tuple[Relay, Client]]]


@pytest.fixture
def config() -> str:
    given = PickerInput(
        weights=ScorerWeights({"queue": 2, "kv_cache_utilization": 2, "gpu_prefix": 1, "cpu_prefix": 1}),
        tokens=TierTokens({Tier.GPU: 100_000, Tier.CPU: 1_000_000}),
        engine_block_tokens=16,
        max_prefix_tokens=32_768,
    )
    return picker_config("builtin", given).text


@pytest.fixture
def start_gateway(tmp_path: Path, config: str) -> StartGateway:
    @asynccontextmanager
    async def start(mode: FailureMode) -> AsyncIterator[tuple[LocalGateway, Client]]:
        listen = Address(LOOPBACK, free_ports(1, LOOPBACK)[0])
        async with running_engines(2) as engines:
            gateway = LocalGateway(listen, engines, Routing(config, mode), tmp_path)
            async with gateway, ClientSession() as session:
                await gateway.open()
                yield gateway, Client(session, f"http://{listen}")

    return start


@pytest.fixture
def start_relayed(tmp_path: Path, config: str) -> StartRelayed:
    @asynccontextmanager
    async def start(mode: FailureMode) -> AsyncIterator[tuple[Relay, Client]]:
        listen = Address(LOOPBACK, free_ports(1, LOOPBACK)[0])
        async with running_engines(2) as engines:
            gateway = Relayed(listen, engines, Routing(config, mode), tmp_path)
            async with gateway, ClientSession() as session:
                assert gateway.picker_address is not None
                async with running_relay(gateway.picker_address) as (relay, gateway.relay_address):
                    await gateway.open()
                    yield relay, Client(session, f"http://{listen}")

    return start
