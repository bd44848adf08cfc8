"""A resource's own gateway with a real Envoy: picks, failure modes, TLS, several models."""

import http.client
import json
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.picker.harness.bootstrap import DESTINATION
from tests.picker.harness.client import Answer, get, post
from tests.picker.harness.envoy import Envoy
from tests.picker.harness.fleet import Fleet
from tests.picker.harness.pickers.own import Own, OwnStart, running_own
from tests.picker.standalone.placed import (
    NOBODY,
    READY,
    Places,
    Wanted,
    certificate_of,
    running_gateway,
)
from tests.shared.waiting import eventually

LONG = "a prompt that several requests share " * 400
COMPLETIONS = "/v1/completions"
# a prefix counts for more than what a few requests at once add to a queue
PREFIX_FIRST = {"weights": {"queue": 1, "kvCacheUtilization": 1, "gpuPrefix": 10, "cpuPrefix": 10}}


def places(fleet: Fleet, picker: tuple[str, int] = NOBODY, **others: tuple[str, int]) -> Places:
    known = {f"{name}-gateway": [address] for name, address in others.items()}
    return {"case-engine": fleet.pods, "case-picker": [picker], **known}


def ask(envoy: Envoy, prompt: str, model: str = "fake", **headers: str) -> Answer:
    body = json.dumps({"model": model, "prompt": prompt}).encode()
    return post(envoy.url("gateway") + COMPLETIONS, body, headers)


@pytest.fixture(scope="module")
def picker(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Own]:
    """kvtier's own, with the configuration and the TLS that it has on a cluster."""
    start = OwnStart(Wanted(router=PREFIX_FIRST).picker_config(), tls=True)
    with running_own(start, fleet.pods, tmp_path_factory.mktemp("picker")) as running:
        yield running


@pytest.fixture(scope="module")
def envoy(picker: Own, fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Envoy]:
    with running_gateway(
        Wanted(), places(fleet, picker.address), tmp_path_factory.mktemp("envoy")
    ) as started:
        yield started


def test_one_prompt_goes_to_one_engine_whatever_a_client_writes(envoy: Envoy, fleet: Fleet) -> None:
    first = ask(envoy, LONG)
    assert (first.status, first.engine in fleet.addresses) == (200, True)
    assert {ask(envoy, f"{LONG} {n}").engine for n in range(5)} == {first.engine}
    other = next(address for address in fleet.addresses if address != first.engine)
    assert ask(envoy, LONG, **{DESTINATION: other}).engine == first.engine
    assert envoy.statistic("cluster.picked-engine.upstream_rq_200") >= 7
    assert envoy.statistic("cluster.engines.upstream_rq_200") == 0


@pytest.mark.parametrize("exposed", [False, True])
def test_answers_say_which_engine_served_only_where_asked_to(
    fleet: Fleet, tmp_path: Path, *, exposed: bool
) -> None:
    """Whatever wrote it: this picker does."""
    wanted = Wanted(router={"exposeEndpoint": exposed})
    start = OwnStart(wanted.picker_config(), tls=True, arguments=["--tell-endpoint"])
    (beside := tmp_path / "picker").mkdir()
    with (
        running_own(start, fleet.pods, beside) as own,
        running_gateway(wanted, places(fleet, own.address), tmp_path / "gateway") as gateway,
    ):
        answer = ask(gateway, LONG)
    assert answer.headers.get("x-gateway-destination-endpoint-served") == (answer.engine if exposed else None)


def test_a_large_body_arrives_as_it_was_sent(envoy: Envoy, fleet: Fleet) -> None:
    seen: list[bytes] = []
    for engine in fleet.engines.values():
        engine.bodies = lambda _path, body: seen.append(body)
    try:
        assert ask(envoy, "é" * 200_000).status == 200
    finally:
        for engine in fleet.engines.values():
            engine.bodies = None
    assert [json.loads(body)["prompt"] for body in seen] == ["é" * 200_000]


def test_requests_without_a_body_are_answered_too(envoy: Envoy) -> None:
    assert get(envoy.url("gateway") + "/v1/models").status == 200


def test_it_is_ready_by_itself(envoy: Envoy, fleet: Fleet, tmp_path: Path) -> None:
    assert get(envoy.url("gateway") + READY).status == 200
    with running_gateway(Wanted(mode="FailClose"), places(fleet), tmp_path) as alone:
        assert get(alone.url("gateway") + READY).status == 200
        assert get(alone.url("gateway") + "/v1/models").status == 503


@pytest.mark.parametrize("flavor", ["builtin", "llm-d"])
@pytest.mark.parametrize("mode", ["FailOpen", "FailClose"])
def test_without_a_picker_it_does_what_the_mode_says(
    fleet: Fleet, tmp_path: Path, flavor: str, mode: str
) -> None:
    with running_gateway(Wanted(flavor, mode), places(fleet), tmp_path) as alone:
        answers = [ask(alone, LONG) for _ in range(2 * len(fleet.addresses))]
    if mode == "FailClose":
        assert {(answer.status, answer.engine) for answer in answers} == {(503, "")}
    else:
        assert {answer.status for answer in answers} == {200}
        assert {answer.engine for answer in answers} == set(fleet.addresses)


def test_without_a_picker_no_client_chooses_the_engine(fleet: Fleet, tmp_path: Path) -> None:
    """Each of Envoy's two workers takes turns: one of them has half of the requests or more."""
    chosen = {DESTINATION: fleet.addresses[0]}
    with running_gateway(Wanted(), places(fleet), tmp_path) as alone:
        engines = {ask(alone, LONG, **chosen).engine for _ in range(2 * len(fleet.addresses))}
    assert engines == set(fleet.addresses)


def test_a_picker_that_ends_and_comes_back(fleet: Fleet, tmp_path: Path) -> None:
    start = OwnStart(Wanted().picker_config(), tls=True)
    with (
        running_own(start, fleet.pods, tmp_path) as own,
        running_gateway(Wanted(), places(fleet, own.address), tmp_path / "open") as opened,
        running_gateway(Wanted(mode="FailClose"), places(fleet, own.address), tmp_path / "closed") as closed,
    ):
        assert [ask(each, LONG).status for each in (opened, closed)] == [200, 200]
        own.process.stop()
        eventually(lambda: ask(closed, LONG).status == 503, "a refusal")
        assert {ask(opened, LONG).status for _ in range(6)} == {200}
        (again := tmp_path / "again").mkdir()
        with running_own(replace(start, port=own.port), fleet.pods, again):
            eventually(lambda: ask(closed, LONG).status == 200, "a pick")


def served_certificate(envoy: Envoy) -> str:
    return ssl.get_server_certificate(("127.0.0.1", envoy.ports["gateway"]))


def test_https_with_a_certificate_that_is_renewed(picker: Own, fleet: Fleet, tmp_path: Path) -> None:
    certificate = certificate_of(tmp_path)
    wanted = Wanted(settings={"tlsSecretName": "tls"})
    with running_gateway(wanted, places(fleet, picker.address), tmp_path) as envoy:
        context = ssl.create_default_context(cafile=str(certificate))
        context.check_hostname = False
        client = http.client.HTTPSConnection("127.0.0.1", envoy.ports["gateway"], context=context, timeout=60)
        body = json.dumps({"model": "fake", "prompt": LONG}).encode()
        client.request("POST", COMPLETIONS, body, {"content-type": "application/json"})
        answer = client.getresponse()
        assert answer.status == 200
        assert answer.getheader("x-engine") in fleet.addresses
        client.close()
        with pytest.raises((OSError, http.client.HTTPException)):
            get(envoy.url("gateway") + READY)  # in the clear
        first = served_certificate(envoy)
        certificate_of(tmp_path)
        eventually(lambda: served_certificate(envoy) != first, "the new certificate")


def test_without_its_certificate_it_is_not_ready(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "certificate").mkdir()
    wanted = Wanted(settings={"tlsSecretName": "tls"})
    with (
        running_gateway(wanted, places(fleet), tmp_path) as envoy,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        served_certificate(envoy)


def test_several_resources_share_a_url_by_model(fleet: Fleet, tmp_path: Path) -> None:
    front, behind = fleet.pods[:1], fleet.pods[1:2]
    # each sends what it does not serve to the other
    both = {"models": [{"name": "small", "resource": "small"}]}
    back = {"models": [{"name": "fake", "resource": "front"}, {"name": "small", "resource": "front"}]}
    second_places: Places = {"case-engine": behind, "case-picker": [NOBODY], "front-gateway": [NOBODY]}
    with running_gateway(Wanted(settings=back), second_places, tmp_path / "behind") as second:
        first_places: Places = {
            "case-engine": front,
            "case-picker": [NOBODY],
            "small-gateway": [("127.0.0.1", second.ports["gateway"])],
        }
        with running_gateway(Wanted(settings=both), first_places, tmp_path / "front") as first:
            assert ask(first, LONG).engine == fleet.addresses[0]
            assert ask(first, LONG, "unknown").engine == fleet.addresses[0]
            for prompt in ("short", "é" * 1_000_000):
                passed_on = ask(first, prompt, "small")
                # and does not send it back, though it says so
                assert (passed_on.status, passed_on.engine) == (200, fleet.addresses[1])
            body = json.dumps({"model": "small", "prompt": "x"}).encode()
            charset = {"content-type": "Application/JSON; charset=utf-8"}
            answer = post(first.url("gateway") + COMPLETIONS, body, charset)
            assert answer.engine == fleet.addresses[1]
            assert post(first.url("gateway") + COMPLETIONS, b"{no json").engine == fleet.addresses[0]
            assert get(first.url("gateway") + "/v1/models").engine == fleet.addresses[0]
            # only what reads models says whose a request is
            forged = ask(first, "short", **{"x-kvtier-resource": "small"})
            assert forged.engine == fleet.addresses[0]
            assert ask(first, "x" * 9_000_000).status == 413
