"""Requests through real Envoy and the real 1.5.0 picker, configured by kvtier, reach engines."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.provider import Cluster
from tests.picker.flavours.inputs import EXAMPLE
from tests.picker.harness.bootstrap import DESTINATION, Gateway, Routing
from tests.picker.harness.client import Answer, post
from tests.picker.harness.envoy import Envoy, running_envoy
from tests.picker.harness.fleet import Fleet
from tests.picker.harness.pickers.gaie import Gaie, Start, running_gaie
from tests.picker.harness.pool import made_pool

from kvtier_scorer.config.flavors import picker_config

LONG = "a prompt that several requests share " * 400


@pytest.fixture(scope="module", params=[True, False], ids=["tls", "plain"])
def picker(
    request: pytest.FixtureRequest,
    control_plane: Cluster,
    fleet: Fleet,
    tmp_path_factory: pytest.TempPathFactory,
    say: Say,
) -> Iterator[tuple[Gaie, bool]]:
    config = picker_config("gaie", replace(EXAMPLE, version="1.5")).text
    start = Start("1.5", config, tls=request.param)
    folder = tmp_path_factory.mktemp("picker")
    name = f"through-envoy-{str(request.param).lower()}"
    with (
        made_pool(control_plane, name, fleet.port, fleet.ips) as pool,
        running_gaie(start, pool, len(fleet.ips), folder, say) as running,
    ):
        yield running, request.param


@pytest.fixture(scope="module")
def envoy(
    picker: tuple[Gaie, bool], fleet: Fleet, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Envoy]:
    running, tls = picker
    gateways = [
        Gateway(f"{routing.name}-{body}", running.address, fleet.pods, routing, tls=tls, response_body=body)
        for routing in Routing
        for body in (False, True)
    ]
    with running_envoy(gateways, tmp_path_factory.mktemp("envoy")) as started:
        yield started


def chat(envoy: Envoy, gateway: str, prompt: str, **headers: str) -> Answer:
    body = {"model": "fake", "messages": [{"role": "user", "content": prompt}]}
    return post(f"{envoy.url(gateway)}/v1/chat/completions", json.dumps(body).encode(), headers)


@pytest.mark.parametrize("response_body", [False, True], ids=["headers", "bodies"])
@pytest.mark.parametrize("routing", Routing, ids=lambda each: each.name)
def test_requests_reach_engines(envoy: Envoy, fleet: Fleet, routing: Routing, response_body: bool) -> None:
    gateway = f"{routing.name}-{response_body}"
    first = chat(envoy, gateway, f"{gateway} {LONG}")
    assert first.status == 200
    assert first.engine in fleet.addresses
    assert json.loads(first.body)["choices"]
    assert envoy.statistic(f"http.{gateway}.ext_proc.streams_started") == 1
    # the picker knows the prefix now, in blocks of 14 tokens
    assert {chat(envoy, gateway, f"{gateway} {LONG} {n}").engine for n in range(5)} == {first.engine}


def test_an_engine_sees_the_body_as_it_was_sent(envoy: Envoy, fleet: Fleet) -> None:
    seen: list[bytes] = []
    for engine in fleet.engines.values():
        engine.bodies = lambda _path, body: seen.append(body)
    try:
        prompt = "é" * 200_000  # several chunks of the protocol's 62,000 bytes
        assert chat(envoy, "ORIGINAL_DST-False", prompt).status == 200
    finally:
        for engine in fleet.engines.values():
            engine.bodies = None
    assert [json.loads(body)["messages"][0]["content"] for body in seen] == [prompt]


def test_a_client_cannot_choose_the_engine(envoy: Envoy, fleet: Fleet) -> None:
    chosen = {
        chat(envoy, "ORIGINAL_DST-False", f"{n}", **{DESTINATION: "192.0.2.1:80"}).engine for n in range(3)
    }
    assert chosen <= set(fleet.addresses)
