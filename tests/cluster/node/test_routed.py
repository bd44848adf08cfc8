"""Requests through Envoy and a picker on the cluster, ours or upstream's 1.5.0, reach real engines."""

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.harness.engines import MODEL
from tests.cluster.harness.installed import Site
from tests.picker.harness.bootstrap import Gateway
from tests.picker.harness.client import Answer, get, post
from tests.picker.harness.envoy import Envoy, running_envoy
from tests.waiting import eventually

from kvtier_operator.runtime.metrics import parse_metrics

RESOURCE = Path(__file__).with_name("routed.yaml")
READY_S = 480
ROUTERS = {"builtin": {"flavor": "builtin", "kvEvents": True}, "gaie": {"flavor": "gaie", "version": "1.5"}}
EXT_PROC, METRICS, SERVING = 9002, 9090, 8000
WORDS = random.Random(7).choices(  # noqa: S311 - words
    ("lorem", "ipsum", "dolor", "sit", "amet"), k=700
)


class Routed:
    """Engines, their picker and a gateway in front."""

    def __init__(self, site: Site, flavor: str) -> None:
        self.site, self.flavor = site, flavor
        document = yaml.safe_load(RESOURCE.read_text())
        document["spec"]["router"] = ROUTERS[flavor]
        site.kubectl("apply", "--server-side", "--filename", "-", stdin=json.dumps(document))
        generation = site.kubectl.json("get", "kvct", "routed")["metadata"]["generation"]
        for field in (f"{{.status.observedGeneration}}={generation}", "{.status.readyReplicas}=2"):
            site.kubectl("wait", "kvct/routed", f"--for=jsonpath={field}", f"--timeout={READY_S}s")
        site.kubectl("rollout", "status", "deployment/routed-picker", f"--timeout={READY_S}s")
        site.kubectl("wait", "kvct/routed", "--for=condition=Ready", f"--timeout={READY_S}s")

    def pods(self, component: str) -> dict[str, str]:
        """IP address of each pod that is not on its way out, by name."""
        labels = f"app.kubernetes.io/component={component},app.kubernetes.io/instance=routed"
        found: list[dict[str, Any]] = self.site.kubectl.json("get", "pods", "--selector", labels)["items"]
        return {
            pod["metadata"]["name"]: pod["status"]["podIP"]
            for pod in found
            if "deletionTimestamp" not in pod["metadata"] and pod["status"].get("podIP")
        }

    def picker_metrics(self) -> str:
        """What our picker counts."""
        (ip,) = self.pods("picker").values()
        return get(f"http://{ip}:{METRICS}/metrics").body.decode()

    def cached(self) -> dict[str, float]:
        """Prompt tokens that each engine had cached, by the engine's own counters."""
        ips = self.pods("engine").values()
        text = {ip: get(f"http://{ip}:{SERVING}/metrics").body.decode() for ip in ips}
        return {ip: sum(parse_metrics(each).cached_tokens.values()) for ip, each in text.items()}


@pytest.fixture(scope="module", params=list(ROUTERS))
def routed(site: Site, request: pytest.FixtureRequest) -> Iterator[Routed]:
    yield Routed(site, request.param)
    if request.param == list(ROUTERS)[-1]:
        site.kubectl("delete", "kvct", "routed", "--wait")


@pytest.fixture(scope="module")
def envoy(routed: Routed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Envoy]:
    service = routed.site.kubectl.json("get", "service", "routed-picker")["spec"]["clusterIP"]
    gateway = Gateway("one", (service, EXT_PROC), tls=True, message_timeout_s=30)
    with running_envoy([gateway], tmp_path_factory.mktemp("envoy")) as started:
        yield started


def complete(envoy: Envoy, prompt: str, model: str = MODEL) -> Answer:
    body = {"model": model, "prompt": prompt, "max_tokens": 4, "temperature": 0}
    return post(envoy.url("one") + "/v1/completions", json.dumps(body).encode())


def test_a_prefix_is_asked_for_where_it_is(routed: Routed, envoy: Envoy) -> None:
    prompt = f"{routed.flavor} {time.time()} " + " ".join(WORDS)
    first = complete(envoy, prompt)
    assert first.status == 200, first.body
    assert json.loads(first.body)["usage"]["completion_tokens"] == 4
    before = routed.cached()
    for _ in range(3):
        assert complete(envoy, prompt).status == 200
    grown = [tokens - before[ip] for ip, tokens in routed.cached().items()]
    home, other = max(grown), min(grown)
    tokens = json.loads(first.body)["usage"]["prompt_tokens"]
    assert home > 3 * 0.9 * tokens
    assert other == 0


def test_an_unknown_model_is_the_engines_to_refuse(envoy: Envoy) -> None:
    answer = complete(envoy, "x", model="unknown/model")
    assert answer.status == 404
    assert "unknown/model" in json.loads(answer.body)["error"]["message"]


# upstream's is told by its configuration, which tests of the operator look at
@pytest.mark.parametrize("routed", ["builtin"], indirect=True, scope="module")
def test_our_picker_has_each_tiers_true_capacity(routed: Routed, envoy: Envoy) -> None:
    status = routed.site.kubectl.json("get", "kvct", "routed")["status"]["tiers"]
    names = routed.pods("engine")
    # the CPU tier's size is told with an engine's first request
    for n in range(8):
        complete(envoy, f"{n} " + " ".join(WORDS))

    def agree() -> bool:
        told = routed.picker_metrics()
        return all(
            f'kvtier_picker_tier_capacity_blocks{{pod="{name}",tier="cpu"}} {status["cpu"]["tokens"] // 32}.0'
            in told
            for name in names
        )

    eventually(agree, "the picker's CPU capacities", 60)


# upstream's guesses
@pytest.mark.parametrize("routed", ["builtin"], indirect=True, scope="module")
def test_our_picker_follows_the_engines_events(routed: Routed, envoy: Envoy) -> None:
    prompt = f"{time.time()} " + " ".join(WORDS)
    tokens = json.loads(complete(envoy, prompt).body)["usage"]["prompt_tokens"]
    (ip,) = routed.pods("picker").values()
    body = json.dumps({"model": MODEL, "prompt": prompt}).encode()

    def known() -> bool:
        answer = post(f"http://{ip}:{METRICS}/explain/v1/completions", body)
        best: dict[str, int] = json.loads(answer.body)["pods"][0]["matched_tokens"]
        return min(best["gpu"], best["cpu"]) > 0.9 * int(tokens)

    eventually(lambda: "kvtier_picker_pods_precise 2.0" in routed.picker_metrics(), "precise pods", 60)
    eventually(known, "the prompt in both tiers, by the engines' own word", 60)


def test_a_pod_that_goes_takes_no_request_with_it(routed: Routed, envoy: Envoy) -> None:
    names = list(routed.pods("engine"))
    routed.site.kubectl("delete", "pod", names[0], "--wait=false")
    until = time.monotonic() + 5
    statuses: set[int] = set()
    while time.monotonic() < until:
        statuses.add(complete(envoy, f"{len(statuses)} " + " ".join(WORDS[:50])).status)
    assert statuses == {200}
    jsonpath = "--for=jsonpath={.status.readyReplicas}=2"
    routed.site.kubectl("wait", "kvct/routed", jsonpath, f"--timeout={READY_S}s")
