"""Requests through Envoy and a picker on the cluster, ours or upstream's 1.5.0, reach real engines."""

import json
import random
import subprocess
import time
from typing import Any

import pytest
from tests.cluster.harness.images.engines import SMALL_MODEL
from tests.cluster.harness.node.processes import pod_processes
from tests.cluster.node.engines import OURS, Engines
from tests.picker.harness.client import Answer, post
from tests.picker.harness.envoy import Envoy
from tests.shared.waiting import eventually

# About 1,700 tokens, of 2,048 that the engines take.
WORDS = random.Random(7).choices(  # noqa: S311 - words
    ("lorem", "ipsum", "dolor", "sit", "amet"), k=600
)


def complete(envoy: Envoy, prompt: str, model: str = SMALL_MODEL.name) -> Answer:
    body = {"model": model, "prompt": prompt, "max_tokens": 4, "temperature": 0, "ignore_eos": True}
    return post(envoy.url("one") + "/v1/completions", json.dumps(body).encode())


def test_prefixes_are_asked_for_where_they_are(engines: Engines, envoy: Envoy) -> None:
    found = [came_back_to_its_engine(engines, envoy, f"{number} {time.time()}") for number in range(6)]
    # A picker sends a request elsewhere where it has not heard from an engine for half a second.
    assert found.count(True) >= 5, found


def came_back_to_its_engine(engines: Engines, envoy: Envoy, name: str) -> bool:
    """Whether the second of two equal requests is served from what the first has left."""
    prompt = f"{engines.kind} {name} " + " ".join(WORDS[:250])
    first = complete(envoy, prompt)
    assert first.status == 200, first.body
    usage: dict[str, int] = json.loads(first.body)["usage"]
    assert usage["completion_tokens"] == 4
    if engines.kind == OURS:
        # It counts who was sent where since it last asked the engines, and believes their events alone.
        eventually(lambda: explained(engines, prompt)[0]["matched_tokens"]["gpu"], "the engine's events", 60)
    before = engines.cached()
    assert complete(envoy, prompt).status == 200
    grown = [tokens - before[ip] for ip, tokens in engines.cached().items()]
    return max(grown) > 0.9 * usage["prompt_tokens"]


def explained(engines: Engines, prompt: str) -> list[dict[str, Any]]:
    """What our picker says of each engine for a prompt, the best first."""
    (picker,) = engines.pods("picker")
    body = json.dumps({"model": SMALL_MODEL.name, "prompt": prompt})
    url = "http://127.0.0.1:9091/explain/v1/completions"
    (process, *_) = pod_processes(picker["metadata"]["uid"])
    # it answers its own pod alone, which is what kubectl port-forward comes from
    command = ["nsenter", f"--net=/proc/{process.pid}/ns/net", "curl", "--silent", "--data", body, url]
    answer = subprocess.run(command, check=True, capture_output=True, timeout=60)  # noqa: S603 - our own command
    pods: list[dict[str, Any]] = json.loads(answer.stdout)["pods"]
    return pods


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

    def known() -> bool:
        best: dict[str, int] = explained(engines, prompt)[0]["matched_tokens"]
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
