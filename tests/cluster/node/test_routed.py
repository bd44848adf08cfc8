"""Requests through Envoy and a picker on the cluster, ours or upstream's 1.5.0, reach real engines."""

import json
import random
import time
from collections.abc import Iterator

import pytest
from tests.cluster.harness.engines import SMALL_MODEL
from tests.cluster.node.engines import METRICS_PORT, OURS, Engines
from tests.picker.harness.bootstrap import Gateway
from tests.picker.harness.client import Answer, post
from tests.picker.harness.envoy import Envoy, running_envoy
from tests.waiting import eventually

EXT_PROC = 9002
# About 1,700 tokens, of 2,048 that the engines take.
WORDS = random.Random(7).choices(  # noqa: S311 - words
    ("lorem", "ipsum", "dolor", "sit", "amet"), k=600
)


@pytest.fixture(scope="module")
def envoy(engines: Engines, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Envoy]:
    service = engines.site.kubectl.json("get", "service", f"{engines.name}-picker")["spec"]["clusterIP"]
    gateway = Gateway("one", (service, EXT_PROC), tls=True, message_timeout_s=30)
    with running_envoy([gateway], tmp_path_factory.mktemp("envoy")) as started:
        yield started


def complete(envoy: Envoy, prompt: str, model: str = SMALL_MODEL.name) -> Answer:
    body = {"model": model, "prompt": prompt, "max_tokens": 4, "temperature": 0, "ignore_eos": True}
    return post(envoy.url("one") + "/v1/completions", json.dumps(body).encode())


def test_a_prefix_is_asked_for_where_it_is(engines: Engines, envoy: Envoy) -> None:
    prompt = f"{engines.kind} {time.time()} " + " ".join(WORDS)
    first = complete(envoy, prompt)
    assert first.status == 200, first.body
    assert json.loads(first.body)["usage"]["completion_tokens"] == 4
    before = engines.cached()
    for _ in range(3):
        assert complete(envoy, prompt).status == 200
    grown = [tokens - before[ip] for ip, tokens in engines.cached().items()]
    home, other = max(grown), min(grown)
    tokens = json.loads(first.body)["usage"]["prompt_tokens"]
    assert home > 3 * 0.9 * tokens
    assert other == 0


def test_an_unknown_model_is_the_engines_to_refuse(envoy: Envoy) -> None:
    answer = complete(envoy, "x", model="unknown/model")
    assert answer.status == 404
    assert "unknown/model" in json.loads(answer.body)["error"]["message"]


# upstream's is told by its configuration, which tests of the operator look at
@pytest.mark.parametrize("engines", [OURS], indirect=True, scope="package")
def test_our_picker_has_each_tiers_true_capacity(engines: Engines, envoy: Envoy) -> None:
    status = engines.site.kubectl.json("get", "kvct", engines.name)["status"]["tiers"]
    names = engines.ips()
    # the CPU tier's size is told with an engine's first request
    for n in range(8):
        complete(envoy, f"{n} " + " ".join(WORDS))

    def agree() -> bool:
        told = engines.picker_metrics()
        return all(
            f'kvtier_picker_tier_capacity_blocks{{pod="{name}",tier="cpu"}} {status["cpu"]["tokens"] // 32}.0'
            in told
            for name in names
        )

    eventually(agree, "the picker's CPU capacities", 60)


# upstream's guesses
@pytest.mark.parametrize("engines", [OURS], indirect=True, scope="package")
def test_our_picker_follows_the_engines_events(engines: Engines, envoy: Envoy) -> None:
    prompt = f"{time.time()} " + " ".join(WORDS)
    tokens = json.loads(complete(envoy, prompt).body)["usage"]["prompt_tokens"]
    (ip,) = engines.ips("picker").values()
    body = json.dumps({"model": SMALL_MODEL.name, "prompt": prompt}).encode()

    def known() -> bool:
        answer = post(f"http://{ip}:{METRICS_PORT}/explain/v1/completions", body)
        best: dict[str, int] = json.loads(answer.body)["pods"][0]["matched_tokens"]
        return min(best["gpu"], best["cpu"]) > 0.9 * int(tokens)

    eventually(lambda: "kvtier_picker_pods_precise 2.0" in engines.picker_metrics(), "precise pods", 60)
    eventually(known, "the prompt in both tiers, by the engines' own word", 60)


def test_a_pod_that_goes_takes_no_request_with_it(engines: Engines, envoy: Envoy) -> None:
    names = list(engines.ips())
    engines.site.kubectl("delete", "pod", names[0], "--wait=false")
    until = time.monotonic() + 5
    statuses: set[int] = set()
    while time.monotonic() < until:
        statuses.add(complete(envoy, f"{len(statuses)} " + " ".join(WORDS[:50])).status)
    assert statuses == {200}
