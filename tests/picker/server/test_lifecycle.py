"""How our picker starts, is probed, shows its certificate and stops, with requests under way."""

import json
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from tests.cluster.harness.programs.ports import free_ports
from tests.picker.harness.bootstrap import Gateway
from tests.picker.harness.client import Answer, post
from tests.picker.harness.envoy import Envoy, running_envoy
from tests.picker.harness.fleet import Fleet
from tests.picker.harness.health import is_serving
from tests.picker.harness.pickers.own import Own, OwnStart, running_own
from tests.picker.server.conftest import CONFIG

from kvtier_scorer.picker.gateway.transport.certificates import make_certificate

BODY = json.dumps({"model": "fake", "prompt": "x" * 4000}).encode()
PATH = "/v1/completions"


@contextmanager
def gateway_and_picker(
    fleet: Fleet,
    folder: Path,
    start: OwnStart | None = None,
    *,
    fail_open: bool = False,
    response_body: bool = False,
) -> Iterator[tuple[Envoy, Own]]:
    start = start or OwnStart(CONFIG)
    with running_own(start, fleet.pods, folder) as own:
        gateway = Gateway("one", own.address, fleet.pods, fail_open=fail_open, response_body=response_body)
        with running_envoy([replace(gateway, tls=start.tls)], folder) as envoy:
            yield envoy, own


def test_probes_are_told(fleet: Fleet, tmp_path: Path) -> None:
    with running_own(OwnStart(CONFIG), fleet.pods, tmp_path) as own:
        for service in ("", "liveness", "readiness", "inference-extension"):
            assert is_serving(f"127.0.0.1:{own.health_port}", service)
            assert is_serving(f"127.0.0.1:{own.port}", service)
        assert not is_serving(f"127.0.0.1:{own.health_port}", "another")


@pytest.mark.parametrize("fail_open", [True, False])
@pytest.mark.parametrize("response_body", [True, False])
def test_no_request_is_lost_when_it_stops(
    fleet: Fleet, tmp_path: Path, fail_open: bool, response_body: bool
) -> None:
    answers: list[Answer] = []
    arrived, finish = threading.Event(), threading.Event()

    def held(_path: str, _body: bytes) -> None:
        arrived.set()

    for engine in fleet.engines.values():
        engine.bodies, engine.held = held, finish
    try:
        with gateway_and_picker(fleet, tmp_path, fail_open=fail_open, response_body=response_body) as (
            envoy,
            own,
        ):
            asking = threading.Thread(target=lambda: answers.append(post(envoy.url("one") + PATH, BODY)))
            asking.start()
            assert arrived.wait(30)
            own.process.send(signal.SIGTERM)
            own.process.wait_until_log("stopping")
            if not response_body:
                assert own.process.wait() == 0, "it has no part in the response, and need not wait for it"
            finish.set()
            asking.join(30)
            assert own.process.wait() == 0
    finally:
        for engine in fleet.engines.values():
            engine.bodies, engine.held = None, None
    [answer] = answers
    assert answer.status == 200
    assert json.loads(answer.body)["choices"]


def test_the_certificate_is_the_files_and_is_renewed(fleet: Fleet, tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    folder.mkdir()
    make_certificate(folder)
    start = OwnStart(CONFIG, tls=True, arguments=[f"--cert-path={folder}"])
    with gateway_and_picker(fleet, tmp_path, start) as (envoy, own):
        first = shown(own)
        assert first == (folder / "tls.crt").read_text()
        assert post(envoy.url("one") + PATH, BODY).status == 200
        make_certificate(folder)
        own.process.wait_until(lambda: shown(own) != first)
        assert shown(own) == (folder / "tls.crt").read_text()


def shown(own: Own) -> str:
    return ssl.get_server_certificate(own.address)


def test_each_start_makes_its_own_certificate(fleet: Fleet, tmp_path: Path) -> None:
    with running_own(OwnStart(CONFIG, tls=True), fleet.pods, tmp_path) as own:
        certificate = x509.load_pem_x509_certificate(shown(own).encode())
    assert certificate.subject == certificate.issuer


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give one of --endpoints, --pool-name and --endpoint-selector"),
        (["--endpoints=engine:80"], "pod 'engine:80' is not an ip:port"),
        (["--endpoints="], "the list of pods is empty"),
        (["--pool-name=x", "--pool-group=example.com"], "--pool-group: 'example.com' is not known"),
        (["--endpoints=1.2.3.4:80", "--cert-path=/nowhere"], "--cert-path: /nowhere needs a tls.crt"),
        (["--endpoints=1.2.3.4:80", "--grpc-port={taken}"], "--grpc-port {taken}: cannot listen there"),
        (
            ["--endpoints=1.2.3.4:80", "--explain-address=127.0.0.1:{taken}"],
            "--explain-address 127.0.0.1:{taken}: cannot listen there",
        ),
        (
            ["--endpoints=1.2.3.4:80", "--explain-address=0.0.0.0:9091"],
            "--explain-address 0.0.0.0:9091: whoever reaches it learns",
        ),
        (["--endpoints=1.2.3.4:80", "--explain-address=here"], "--explain-address: 'here' is not an ip:port"),
        (
            ["--endpoints=1.2.3.4:80", "--explain-token-file=/nowhere"],
            "--explain-token-file: /nowhere: No such file",
        ),
        (["--endpoints=1.2.3.4:80", "--config-file=/nowhere"], "--config-file: /nowhere: No such file"),
        (["--endpoints=1.2.3.4:80", "--config-file={wrong}"], "--config-file: {wrong}: kind: must be"),
    ],
)
def test_a_start_that_cannot_be_says_why_in_one_line(
    fleet: Fleet, tmp_path: Path, arguments: list[str], said: str
) -> None:
    config = tmp_path / "picker.yaml"
    config.write_text(CONFIG)
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(CONFIG.replace("kind: EndpointPickerConfig", "kind: Pod"))
    ports = free_ports(4)
    given = [argument.format(taken=fleet.port, wrong=wrong) for argument in arguments]
    command = [
        *(sys.executable, "-m", "kvtier_scorer.picker", f"--config-file={config}"),
        *("--bind-address=127.0.0.1", f"--grpc-port={ports[0]}", "--log-level=error"),
        *(f"--grpc-health-port={ports[1]}", f"--metrics-port={ports[2]}"),
        *(f"--explain-address=127.0.0.1:{ports[3]}", *given),
    ]
    with taken(fleet.port):
        ended = subprocess.run(  # noqa: S603 - our own command
            command, capture_output=True, text=True, timeout=120, check=False
        )
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert line.startswith("kvtier picker: " + said.format(taken=fleet.port, wrong=wrong))


@contextmanager
def taken(port: int) -> Iterator[None]:
    import socket  # noqa: PLC0415

    with socket.create_server(("127.0.0.1", port)):
        yield


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("weights: -1", "apiVersion: must be"),
        (CONFIG + "\nshaping: 1\n", "shaping"),
        (CONFIG.replace("weight: 10", "weight: -1", 1), "weight"),
    ],
    ids=["another-document", "unknown-field", "negative-weight"],
)
def test_a_wrong_configuration_is_refused_with_its_field(tmp_path: Path, text: str, said: str) -> None:
    config = tmp_path / "picker.yaml"
    config.write_text(text)
    ended = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "kvtier_scorer.picker", f"--config-file={config}", "--endpoints=1.2.3.4:80"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert said in line
