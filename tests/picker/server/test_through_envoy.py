"""Requests through a real Envoy and our picker reach the right engines, and errors their clients."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.picker.harness.bootstrap import DESTINATION, Routing
from tests.picker.harness.client import Answer, get, post
from tests.picker.harness.envoy import Envoy
from tests.picker.harness.fleet import Fleet
from tests.picker.harness.pickers.own import Own
from tests.shared.waiting import eventually

LONG = "a prompt that several requests share " * 400
CHAT = "/v1/chat/completions"
ANY = "ORIGINAL_DST-False"
BODIES: Mapping[str, Mapping[str, object]] = {
    CHAT: {"messages": [{"role": "user", "content": LONG}]},
    "/v1/completions": {"prompt": LONG},
    "/v1/responses": {"input": LONG},
    "/v1/embeddings": {"input": LONG},
}


def ask(envoy: Envoy, gateway: str, prompt: str, **more: object) -> Answer:
    body = {"model": "fake", "messages": [{"role": "user", "content": prompt}], **more}
    return post(envoy.url(gateway) + CHAT, json.dumps(body).encode())


@pytest.mark.parametrize("response_body", [False, True], ids=["headers", "bodies"])
@pytest.mark.parametrize("routing", Routing, ids=lambda each: each.name)
def test_one_prompt_goes_to_one_engine(
    envoy: Envoy, fleet: Fleet, routing: Routing, response_body: bool
) -> None:
    gateway = f"{routing.name}-{response_body}"
    first = ask(envoy, gateway, f"{gateway} {LONG}")
    assert first.status == 200
    assert first.engine in fleet.addresses
    assert json.loads(first.body)["choices"]
    assert first.headers["x-gateway-destination-endpoint-served"] == first.engine
    assert {ask(envoy, gateway, f"{gateway} {LONG} {n}").engine for n in range(6)} == {first.engine}


@pytest.mark.parametrize("path", BODIES)
def test_each_api_keeps_its_prefix_together(envoy: Envoy, path: str) -> None:
    body = json.dumps({"model": f"fake{path}", **BODIES[path]}).encode()
    engines = {post(envoy.url(ANY) + path, body).engine for _ in range(6)}
    assert len(engines) == 1
    assert engines != {""}


@pytest.mark.parametrize("field", ["model", "cache_salt"])
def test_salts_and_adapters_keep_prefixes_apart(envoy: Envoy, picker: Own, field: str) -> None:
    prompt = f"{field} {LONG}"
    ask(envoy, ANY, prompt)
    known = explained(picker, prompt)
    other = explained(picker, prompt, **{field: "another"})
    assert max(pod["matched_tokens"]["gpu"] for pod in known["pods"]) > 3000
    assert max(pod["matched_tokens"]["gpu"] for pod in other["pods"]) == 0


def explained(picker: Own, prompt: str, **more: object) -> dict[str, Any]:
    body = {"model": "fake", "messages": [{"role": "user", "content": prompt}], **more}
    answer = post(f"{picker.explain}{CHAT}", json.dumps(body).encode())
    assert answer.status == 200, answer.body
    explanation: dict[str, Any] = json.loads(answer.body)
    return explanation


def test_the_explanation_names_the_pod_that_is_then_picked(envoy: Envoy, picker: Own) -> None:
    prompt = f"to be explained {LONG}"
    ask(envoy, ANY, prompt)
    explanation = explained(picker, prompt)
    best, *others = explanation["pods"]
    assert best["best"]
    assert not any(pod["best"] for pod in others)
    assert set(best["scores"]) == {"queue", "kv_cache_utilization", "gpu_prefix", "cpu_prefix"}
    assert best["address"] == ask(envoy, ANY, prompt).engine


def test_requests_without_a_prompt_go_somewhere(envoy: Envoy, fleet: Fleet) -> None:
    assert get(envoy.url(ANY) + "/v1/models").engine in fleet.addresses
    assert post(envoy.url(ANY) + "/v1/audio/speech", b"\x00not json").engine in fleet.addresses


def test_an_engine_sees_the_body_as_it_was_sent(envoy: Envoy, fleet: Fleet) -> None:
    seen: list[bytes] = []
    for engine in fleet.engines.values():
        engine.bodies = lambda _path, body: seen.append(body)
    body = json.dumps({"model": "fake", "prompt": "é" * 200_000}, ensure_ascii=False).encode()
    try:
        assert post(envoy.url(ANY) + "/v1/completions", body).status == 200
    finally:
        for engine in fleet.engines.values():
            engine.bodies = None
    assert seen == [body]


def test_a_client_cannot_choose_the_engine(envoy: Envoy, fleet: Fleet) -> None:
    body = json.dumps({"model": "fake", "prompt": "x"}).encode()
    chosen = [
        post(envoy.url(ANY) + "/v1/completions", body, {DESTINATION: "192.0.2.1:80"}).engine for _ in range(3)
    ]
    assert set(chosen) <= set(fleet.addresses)


def test_only_the_subset_is_picked_from(envoy: Envoy, fleet: Fleet) -> None:
    engines = {ask(envoy, "subset", f"{n} {LONG}").engine for n in range(20)}
    assert engines == {fleet.addresses[1], fleet.addresses[2]}


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        (CHAT, b"{", 400, "the body is not JSON"),
        (CHAT, b"[]", 400, "the body must be a JSON object, not a list"),
        (CHAT, b'{"model": "m"}', 400, "messages: is required"),
        (CHAT, b'{"model": 1, "messages": [1]}', 400, "model: must be a string, not a number"),
        ("/v1/completions", b'{"model": "m", "prompt": {}}', 400, "prompt: must be a string or a list"),
        ("/v1/completions", b"x" * (50 << 20), 413, "the body is larger than 8388608 bytes"),
    ],
    ids=["cut-off", "list", "no-messages", "no-model", "no-prompt", "50-mib"],
)
def test_a_client_is_told_what_is_wrong(
    envoy: Envoy, path: str, body: bytes, status: int, message: str
) -> None:
    answer = post(envoy.url(ANY) + path, body)
    assert answer.status == status
    assert not answer.engine
    assert message in json.loads(answer.body)["error"]["message"]
    assert ask(envoy, ANY, "the next request is fine").status == 200


@pytest.mark.parametrize("gateway", [ANY, "buffered"])
@pytest.mark.parametrize("size", [1, 300_000], ids=["short", "long"])
def test_hints_of_headers_reach_the_engine_in_the_body(
    envoy: Envoy, fleet: Fleet, gateway: str, size: int
) -> None:
    body = {"model": "fake", "prompt": "x" * size, "kv_transfer_params": {"a": 1, "kvtier": {"retain": 5}}}
    hints = {"X-KVTier-Retain": "60", "x-kvtier-PRIORITY": "high", "x-kvtier-nostore": "perhaps"}
    heads: list[bytes] = []
    bodies: list[bytes] = []
    for engine in fleet.engines.values():
        engine.heads, engine.bodies = heads.append, lambda _path, seen: bodies.append(seen)
    try:
        answer = post(envoy.url(gateway) + "/v1/completions", json.dumps(body).encode(), hints)
    finally:
        for engine in fleet.engines.values():
            engine.heads = engine.bodies = None
    assert answer.status == 200
    [head], [seen] = heads, bodies
    wanted = {"a": 1, "kvtier": {"retain": 60, "priority": "high"}}
    assert json.loads(seen) == {**body, "kv_transfer_params": wanted}
    assert not any(name.lower().encode() in head.lower() for name in hints)
    assert f"content-length: {len(seen)}".encode() in head.lower() or b"chunked" in head.lower()


def test_hints_that_are_nonsense_refuse_nothing(envoy: Envoy) -> None:
    body = json.dumps({"model": "fake", "prompt": "x"}).encode()
    for hints in ({"x-kvtier-priority": "urgent"}, {"x-kvtier-retain": "-1", "x-kvtier-share": "x" * 900}):
        assert post(envoy.url(ANY) + "/v1/completions", body, hints).status == 200


def test_a_subset_without_ready_pods_is_503(envoy: Envoy) -> None:
    answer = ask(envoy, "nobody", "x")
    assert answer.status == 503
    assert "none of the 1 endpoints" in json.loads(answer.body)["error"]["message"]


def test_metrics_count_what_was_done(envoy: Envoy, picker: Own) -> None:
    before = metrics(picker)
    prompt = f"to be counted {LONG}"
    engines = [ask(envoy, ANY, prompt).engine for _ in range(3)]
    post(envoy.url(ANY) + CHAT, b"{")
    # a stream's end is noticed after its answer
    eventually(lambda: metrics(picker)["kvtier_picker_open_streams"] == 0, "end of the streams")
    after = metrics(picker)

    def increase(name: str) -> float:
        return after.get(name, 0.0) - before.get(name, 0.0)

    [engine] = set(engines)
    picks = f'kvtier_picker_picks_total{{endpoint="{engine}",pod="{engine}"}}'
    assert increase(picks) == 3
    assert increase("kvtier_picker_decision_seconds_count") == 3
    assert increase('kvtier_picker_requests_refused_total{status="400"}') == 1
    assert increase('kvtier_picker_responses_total{status="200"}') == 3
    tokens = increase("kvtier_picker_prompt_tokens_total")
    assert tokens > 3 * 3000
    # the first of them was new
    for tier in ("gpu", "cpu"):
        predicted = increase(f'kvtier_picker_predicted_hit_tokens_total{{tier="{tier}"}}')
        assert 0.6 * tokens < predicted < 0.67 * tokens
    assert after["kvtier_picker_pods"] == 3
    capacity = f'kvtier_picker_tier_capacity_blocks{{pod="{engine}",tier="gpu"}}'
    # the fleet's engines say 4,096 blocks of 16 tokens; the configuration says otherwise
    assert after[capacity] == 4096


def metrics(picker: Own) -> dict[str, float]:
    lines = get(f"{picker.http}/metrics").body.decode().splitlines()
    return {
        name: float(value)
        for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    }
