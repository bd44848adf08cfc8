"""Keys at a resource's own gateway with a real Envoy: who gets in, how often, and a Secret that changes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.picker.harness.client import Answer, get, post
from tests.picker.harness.envoy import Envoy
from tests.picker.harness.fleet import Fleet
from tests.picker.standalone.placed import NOBODY, READY, Wanted, mount, running_gateway
from tests.shared.waiting import eventually

ALICE, BOB, NEW = ("sk-alice-0123456789", "sk-bob-0123456789", "sk-alice-9876543210")
KEYS = {"apiKeys": {"secretName": "keys", "requestsPerMinute": 5}}


@pytest.fixture
def gateway(fleet: Fleet, tmp_path: Path) -> Iterator[Envoy]:
    # an entry that is no key is nobody's; what editors leave at the end is no part of one
    mount(tmp_path / "secret-keys", {"alice": f"{ALICE}\n", "bob": BOB, "short": "secret"})
    places = {"case-engine": fleet.pods, "case-picker": [NOBODY]}
    with running_gateway(Wanted(settings=KEYS), places, tmp_path) as envoy:
        yield envoy


def ask(envoy: Envoy, key: str | None, **headers: str) -> Answer:
    shown = {"authorization": f"Bearer {key}"} if key else {}
    body = json.dumps({"model": "fake", "prompt": "hello"}).encode()
    return post(f"{envoy.url('gateway')}/v1/completions", body, {**shown, **headers})


def error_of(answer: Answer) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/json"
    error = json.loads(answer.body)["error"]
    assert error["code"] == answer.status
    return answer.status, error["type"]


def test_only_who_shows_a_key_gets_in_and_the_engine_never_sees_it(gateway: Envoy, fleet: Fleet) -> None:
    heads: list[bytes] = []
    for engine in fleet.engines.values():
        engine.heads = heads.append
    try:
        for wrong in (None, "sk-nobody-0123456789", "secret", ALICE[:-1]):
            refused = ask(gateway, wrong)
            assert error_of(refused) == (401, "AuthenticationError")
            assert refused.headers["www-authenticate"] == "Bearer"
        assert not heads
        assert ask(gateway, ALICE, **{"x-kvtier-client": "bob"}).status == 200
    finally:
        for engine in fleet.engines.values():
            engine.heads = None
    [head] = heads
    assert b"x-kvtier-client: alice\r\n" in head + b"\r\n"
    assert ALICE.encode() not in head
    # nor does it stand where an administrator looks
    configuration = get(f"{gateway.admin}/config_dump").body
    assert b"[redacted]" in configuration
    assert ALICE.encode() not in configuration


def test_who_watches_needs_no_key(gateway: Envoy) -> None:
    assert [get(gateway.url("gateway") + path).status for path in (READY, "/health", "/ping")] == [200] * 3
    assert get(gateway.url("gateway") + "/v1/models").status == 401


def test_over_its_bound_one_key_waits_and_no_other(gateway: Envoy) -> None:
    assert [ask(gateway, ALICE).status for _ in range(5)] == [200] * 5
    assert error_of(ask(gateway, ALICE)) == (429, "RateLimitError")
    assert ask(gateway, BOB).status == 200


def test_a_changed_secret_is_taken_without_a_restart(gateway: Envoy, tmp_path: Path) -> None:
    assert ask(gateway, ALICE).status == 200
    mount(tmp_path / "secret-keys", {"alice": NEW})
    eventually(lambda: ask(gateway, NEW).status == 200, "the new key")
    assert [ask(gateway, key).status for key in (ALICE, BOB)] == [401, 401]
    mount(tmp_path / "secret-keys", {})
    eventually(lambda: ask(gateway, NEW).status == 401, "a gateway without keys")
