"""Keys at a resource's own gateway with a real Envoy: who gets in, how often, and a Secret that changes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.picker.harness.client import Answer, get, post
from tests.picker.harness.envoy import Envoy
from tests.picker.harness.fleet import Fleet
from tests.picker.harness.pickers.own import OwnStart, running_own
from tests.picker.standalone.placed import NOBODY, READY, Wanted, mount, running_gateway
from tests.shared.waiting import eventually

ALICE, BOB, CAROL, NEW = (f"sk-{name}-0123456789" for name in ("alice", "bob", "carol", "new"))
KEYS = {"apiKeys": {"secretName": "keys", "requestsPerMinute": 5}}
PASSED_ON = Wanted(
    settings={**KEYS, "models": [{"name": "small", "resource": "small"}]},
    engine={"env": [{"name": "VLLM_API_KEY", "value": ALICE}]},
)


@pytest.fixture(scope="module")
def gateway(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Envoy]:
    folder = tmp_path_factory.mktemp("gateway")
    # an entry that is no key is nobody's; what editors leave at the end is no part of one
    mount(folder / "secret-keys", {"alice": f"{ALICE}\n", "bob": BOB, "carol": CAROL, "short": "secret"})
    places = {"case-engine": fleet.pods, "case-picker": [NOBODY]}
    with running_gateway(Wanted(settings=KEYS), places, folder) as envoy:
        yield envoy


@contextmanager
def heads_of(fleet: Fleet) -> Iterator[list[bytes]]:
    """First lines and headers of what comes to the engines."""
    heads: list[bytes] = []
    for engine in fleet.engines.values():
        engine.heads = heads.append
    try:
        yield heads
    finally:
        for engine in fleet.engines.values():
            engine.heads = None


def ask(envoy: Envoy, key: str | None, model: str = "fake", **headers: str) -> Answer:
    shown = {"authorization": f"Bearer {key}"} if key else {}
    body = json.dumps({"model": model, "prompt": "hello"}).encode()
    return post(f"{envoy.url('gateway')}/v1/completions", body, {**shown, **headers})


def error_of(answer: Answer) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/json"
    error = json.loads(answer.body)["error"]
    assert error["code"] == answer.status
    return answer.status, error["type"]


def test_only_who_shows_a_key_gets_in_and_the_engine_never_sees_it(gateway: Envoy, fleet: Fleet) -> None:
    with heads_of(fleet) as heads:
        for wrong in (None, "sk-nobody-0123456789", "secret", CAROL[:-1]):
            refused = ask(gateway, wrong)
            assert error_of(refused) == (401, "AuthenticationError")
            assert refused.headers["www-authenticate"] == "Bearer"
        # as the page says: Envoy knows the scheme in this spelling alone
        assert ask(gateway, None, authorization=f"bearer {CAROL}").status == 401
        assert not heads
        assert ask(gateway, CAROL, **{"x-kvtier-client": "bob"}).status == 200
    [head] = heads
    assert b"x-kvtier-client: carol\r\n" in head + b"\r\n"
    assert CAROL.encode() not in head
    # nor does it stand where an administrator looks
    configuration = get(f"{gateway.admin}/config_dump").body
    assert b"[redacted]" in configuration
    assert CAROL.encode() not in configuration


def test_who_watches_needs_no_key_leaves_none_and_sends_no_body(gateway: Envoy, fleet: Fleet) -> None:
    url, shown = gateway.url("gateway"), {"authorization": f"Bearer {CAROL}"}
    asked = "http.gateway.ext_proc.streams_started"
    before = gateway.statistic(asked)
    with heads_of(fleet) as heads:
        assert [get(url + path, shown).status for path in (READY, "/health", "/ping")] == [200] * 3
        # what would hold bodies is not asked
        assert gateway.statistic(asked) == before
        assert [post(url + path, b"{}").status for path in ("/health", "/ping")] == [401] * 2
    [head] = heads  # the stand-in tells none of /health
    assert CAROL.encode() not in head
    assert post(f"{url}/ping", b"{}", shown).status == 200
    assert gateway.statistic(asked) > before
    assert get(f"{url}/v1/models").status == 401


def test_over_its_bound_one_key_waits_and_no_other(gateway: Envoy) -> None:
    assert [ask(gateway, ALICE).status for _ in range(5)] == [200] * 5
    refused = ask(gateway, ALICE)
    assert error_of(refused) == (429, "RateLimitError")
    assert refused.headers["retry-after"] == "60"
    assert ask(gateway, BOB).status == 200


def test_an_engine_that_asks_gets_the_key_and_no_other_resource(fleet: Fleet, tmp_path: Path) -> None:
    mount(tmp_path / "secret-keys", {"alice": ALICE})
    places = {"case-engine": fleet.pods, "case-picker": [NOBODY], "small-gateway": fleet.pods}
    with running_gateway(PASSED_ON, places, tmp_path) as envoy, heads_of(fleet) as heads:
        assert [ask(envoy, ALICE, model).status for model in ("fake", "small")] == [200] * 2
    here, there = heads
    assert b"x-kvtier-passed-on" in there
    assert [ALICE.encode() in head for head in (here, there)] == [True, False]


def test_a_changed_secret_is_taken_without_a_restart(fleet: Fleet, tmp_path: Path) -> None:
    secret = tmp_path / "secret-keys"
    mount(secret, {"alice": ALICE, "bob": BOB})
    places = {"case-engine": fleet.pods, "case-picker": [NOBODY]}
    with running_gateway(Wanted(settings=KEYS), places, tmp_path) as envoy:
        assert ask(envoy, ALICE).status == 200
        mount(secret, {"alice": NEW})
        eventually(lambda: ask(envoy, NEW).status == 200, "the new key")
        assert [ask(envoy, key).status for key in (ALICE, BOB)] == [401, 401]
        mount(secret, {})
        eventually(lambda: ask(envoy, NEW).status == 401, "a gateway without keys")


def test_the_name_of_a_key_is_the_tenant_whatever_clients_say(fleet: Fleet, tmp_path: Path) -> None:
    mount(tmp_path / "secret-keys", {"alice": ALICE, "bob": BOB})
    wanted = Wanted(settings=KEYS)
    start = OwnStart(wanted.picker_config() + "hints: Headers\nshareFrom: Client\n", tls=True)
    bodies: list[bytes] = []
    (beside := tmp_path / "picker").mkdir()
    with running_own(start, fleet.pods, beside) as picker:
        places = {"case-engine": fleet.pods, "case-picker": [picker.address]}
        with running_gateway(wanted, places, tmp_path) as envoy:
            for engine in fleet.engines.values():
                engine.bodies = lambda _path, body: bodies.append(body)
            try:
                forged = {"x-kvtier-share": "bob", "x-kvtier-client": "bob", "x-kvtier-retain": "60"}
                assert ask(envoy, ALICE, **forged).status == 200
            finally:
                for engine in fleet.engines.values():
                    engine.bodies = None
    [body] = bodies
    assert json.loads(body)["kv_transfer_params"] == {"kvtier": {"retain": 60, "share": "alice"}}
