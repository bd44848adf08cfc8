"""The gateway that these tests run: what Envoy does where no picker answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.harness.programs.ports import free_ports
from tests.picker.harness.bootstrap import DESTINATION, Gateway, Routing
from tests.picker.harness.client import post
from tests.picker.harness.envoy import Envoy, running_envoy
from tests.picker.harness.fleet import Fleet

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def envoy(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Envoy]:
    [nobody] = free_ports(1)
    gateways = [
        Gateway(
            f"{routing.name}-{fail_open}",
            ("127.0.0.1", nobody),
            fleet.pods,
            routing,
            fail_open=fail_open,
            health_check_s=0.2,
        )
        for routing in Routing
        for fail_open in (True, False)
    ]
    with running_envoy(gateways, tmp_path_factory.mktemp("envoy")) as started:
        yield started


@pytest.mark.parametrize("routing", Routing, ids=lambda each: each.name)
def test_fail_open_goes_round_robin(envoy: Envoy, fleet: Fleet, routing: Routing) -> None:
    url = envoy.url(f"{routing.name}-True") + CHAT
    answers = [post(url, b"{}") for _ in range(2 * len(fleet.addresses))]
    assert {answer.status for answer in answers} == {200}
    assert {answer.engine for answer in answers} == set(fleet.addresses)


@pytest.mark.parametrize("routing", Routing, ids=lambda each: each.name)
def test_fail_close_refuses(envoy: Envoy, routing: Routing) -> None:
    refused = post(envoy.url(f"{routing.name}-False") + CHAT, b"{}")
    assert refused.status >= 500
    assert not refused.engine


@pytest.mark.parametrize("routing", Routing, ids=lambda each: each.name)
def test_without_a_picker_no_client_chooses_the_engine(envoy: Envoy, fleet: Fleet, routing: Routing) -> None:
    url = envoy.url(f"{routing.name}-True") + CHAT
    chosen = {post(url, b"{}", {DESTINATION: fleet.addresses[0]}).engine for _ in fleet.addresses}
    assert chosen == set(fleet.addresses)


def test_a_stopped_engine_answers_again_once_started(fleet: Fleet, tmp_path: Path) -> None:
    first = fleet.addresses[0]
    with running_envoy([Gateway("one", None, fleet.pods[:1])], tmp_path) as envoy:
        assert post(envoy.url("one") + CHAT, b"{}").engine == first
        fleet.stop(first)
        try:
            assert post(envoy.url("one") + CHAT, b"{}").status == 503
        finally:
            fleet.start(first)
        assert post(envoy.url("one") + CHAT, b"{}").engine == first


def test_an_engine_reports_what_a_test_says(fleet: Fleet, tmp_path: Path) -> None:
    engine = fleet.engines[fleet.addresses[0]]
    engine.waiting, engine.kv_cache_usage = 7, 0.5
    try:
        with running_envoy([Gateway("one", None, fleet.pods[:1])], tmp_path) as envoy:
            text = post(envoy.url("one") + "/metrics", b"").body.decode()
    finally:
        engine.waiting, engine.kv_cache_usage = 0, 0.0
    assert 'vllm:num_requests_waiting{model_name="fake",engine="0"} 7.0' in text
    assert 'vllm:kv_cache_usage_perc{model_name="fake",engine="0"} 0.5' in text
