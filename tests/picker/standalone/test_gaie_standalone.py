"""A resource's own gateway before the inference extension's real picker, over TLS as on a cluster."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.provider import Cluster
from tests.picker.harness.client import Answer, post
from tests.picker.harness.envoy import Envoy
from tests.picker.harness.fleet import Fleet
from tests.picker.harness.pickers.gaie import Start, running_gaie
from tests.picker.harness.pool import made_pool
from tests.picker.standalone.placed import NOBODY, Wanted, running_gateway

LONG = "a prompt that several requests share " * 400
VERSION = {"version": "1.5"}
MIB = 1 << 20


@pytest.fixture(scope="module")
def picker(
    control_plane: Cluster, fleet: Fleet, tmp_path_factory: pytest.TempPathFactory, say: Say
) -> Iterator[tuple[str, int]]:
    start = Start("1.5", Wanted("gaie", router=VERSION).picker_config(), tls=True)
    folder = tmp_path_factory.mktemp("picker")
    with (
        made_pool(control_plane, "standalone", fleet.port, fleet.ips) as pool,
        running_gaie(start, pool, len(fleet.ips), folder, say) as running,
    ):
        yield running.address


def gateway(settings: Mapping[str, Any] | None = None) -> Wanted:
    return Wanted("gaie", "FailClose", settings, VERSION)


def ask(envoy: Envoy, prompt: str) -> Answer:
    body = json.dumps({"model": "fake", "prompt": prompt}).encode()
    return post(envoy.url("gateway") + "/v1/completions", body)


def test_requests_with_one_prefix_reach_one_engine(
    picker: tuple[str, int], fleet: Fleet, tmp_path: Path
) -> None:
    places = {"case-engine": fleet.pods, "case-picker": [picker]}
    with running_gateway(gateway(), places, tmp_path) as envoy:

        def engine(prompt: str) -> str:
            answer = ask(envoy, prompt)
            assert answer.status == 200, answer.body
            return answer.engine

        first = engine(LONG)
        assert {engine(f"{LONG} {n}") for n in range(5)} == {first}
        # more than the picker takes in one message
        assert engine("x" * (10 * MIB))
        assert envoy.statistic("cluster.picked-engine.upstream_rq_200") == 7


def test_a_body_whose_model_is_read_goes_on_in_parts_that_the_picker_takes(
    picker: tuple[str, int], fleet: Fleet, tmp_path: Path
) -> None:
    places = {"case-engine": fleet.pods, "case-picker": [picker], "other-gateway": [NOBODY]}
    shared = gateway({"models": [{"name": "other", "resource": "other"}]})
    with running_gateway(shared, places, tmp_path) as envoy:
        assert [ask(envoy, "x" * bytes_).status for bytes_ in (100, 5 * MIB, 7 * MIB)] == [200] * 3
        assert envoy.statistic("cluster.picked-engine.upstream_rq_200") == 3
        assert ask(envoy, "x" * (9 * MIB)).status == 413
