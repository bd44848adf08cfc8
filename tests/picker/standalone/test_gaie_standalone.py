"""A resource's own gateway before the inference extension's real picker, over TLS as on a cluster."""

import json
from pathlib import Path

from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.provider import Cluster
from tests.picker.harness.client import post
from tests.picker.harness.fleet import Fleet
from tests.picker.harness.pickers.gaie import Start, running_gaie
from tests.picker.harness.pool import made_pool
from tests.picker.standalone.placed import Wanted, running_gateway

LONG = "a prompt that several requests share " * 400


def test_requests_with_one_prefix_reach_one_engine(
    control_plane: Cluster, fleet: Fleet, tmp_path: Path, say: Say
) -> None:
    wanted = Wanted("gaie", router={"version": "1.5"})
    start = Start("1.5", wanted.picker_config(), tls=True)

    with (
        made_pool(control_plane, "standalone", fleet.port, fleet.ips) as pool,
        running_gaie(start, pool, len(fleet.ips), tmp_path, say) as picker,
        running_gateway(
            wanted, {"case-engine": fleet.pods, "case-picker": [picker.address]}, tmp_path / "envoy"
        ) as envoy,
    ):

        def engine(prompt: str) -> str:
            body = json.dumps({"model": "fake", "prompt": prompt}).encode()
            answer = post(envoy.url("gateway") + "/v1/completions", body)
            assert answer.status == 200, answer.body
            return answer.engine

        first = engine(LONG)
        assert {engine(f"{LONG} {n}") for n in range(5)} == {first}
        assert envoy.statistic("cluster.picked-engine.upstream_rq_200") == 6
