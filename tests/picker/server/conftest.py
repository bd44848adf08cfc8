"""kvtier's own picker behind a real Envoy."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.picker.flavours.inputs import EXAMPLE
from tests.picker.harness.bootstrap import Gateway, Routing
from tests.picker.harness.envoy import Envoy, running_envoy
from tests.picker.harness.fleet import Fleet
from tests.picker.harness.pickers.own import Own, OwnStart, running_own

from kvtier_scorer.config.flavors import picker_config

# a prefix counts for more than what a few requests at once add to a queue
CONFIG = picker_config(
    "builtin",
    replace(
        EXAMPLE,
        weights=EXAMPLE.weights | {"queue": 1, "kv_cache_utilization": 1, "gpu_prefix": 10, "cpu_prefix": 10},
    ),
).text


@pytest.fixture(scope="module", params=[True, False], ids=["tls", "plain"])
def tls(request: pytest.FixtureRequest) -> bool:
    """Whether the picker speaks TLS."""
    chosen: bool = request.param
    return chosen


@pytest.fixture(scope="module")
def picker(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory, tls: bool) -> Iterator[Own]:
    """A picker for the fleet."""
    start = OwnStart(CONFIG, tls=tls, arguments=["--log-level=debug", "--tell-endpoint"])
    with running_own(start, fleet.pods, tmp_path_factory.mktemp("picker")) as running:
        yield running


@pytest.fixture(scope="module")
def envoy(picker: Own, fleet: Fleet, tmp_path_factory: pytest.TempPathFactory, tls: bool) -> Iterator[Envoy]:
    """A gateway for each way to reach pods, with and without the picker seeing answers' bodies."""
    gateways = [
        Gateway(f"{routing.name}-{body}", picker.address, fleet.pods, routing, tls=tls, response_body=body)
        for routing in Routing
        for body in (False, True)
    ]
    subset = Gateway(
        "subset", picker.address, fleet.pods, tls=tls, subset=[fleet.addresses[1], fleet.addresses[2]]
    )
    nobody = Gateway("nobody", picker.address, fleet.pods, tls=tls, subset=["192.0.2.1:80"])
    buffered = Gateway("buffered", picker.address, fleet.pods, tls=tls, buffered=True)
    with running_envoy([*gateways, subset, nobody, buffered], tmp_path_factory.mktemp("envoy")) as started:
        yield started
