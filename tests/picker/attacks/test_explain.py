"""/explain tells whether somebody's prompt is cached: not everybody who reaches the picker's pod may ask."""

import http.client
from collections.abc import Iterator
from ipaddress import ip_address

import psutil
import pytest
from tests.picker.attacks.rendered import rendered
from tests.picker.harness.client import Answer, get, post
from tests.picker.harness.fleet import Fleet
from tests.picker.harness.pickers.own import Own, OwnStart, running_own

BODY = b'{"model": "fake", "prompt": "once upon a time"}'


@pytest.fixture(scope="module")
def own(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Own]:
    """A picker that listens as in a pod."""
    start = OwnStart(rendered().config, arguments=["--bind-address="])
    with running_own(start, fleet.pods, tmp_path_factory.mktemp("picker")) as own:
        yield own


def open_to_others(own: Own) -> set[int]:
    """Ports at which another pod reaches it."""
    return {
        connection.laddr.port
        for connection in psutil.Process(own.process.pid).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN and not ip_address(connection.laddr.ip).is_loopback
    }


def asked(port: int, path: str) -> Answer | None:
    """What the port answers; None where it speaks no HTTP/1.1."""
    url = f"http://127.0.0.1:{port}{path}"
    try:
        return get(url) if path == "/explain" else post(url, BODY)
    except (http.client.HTTPException, ConnectionError):
        return None


@pytest.mark.parametrize("path", ["/explain", "/explain/v1/completions"])
def test_no_port_that_others_reach_explains(own: Own, path: str) -> None:
    ports = open_to_others(own)
    assert {own.port, own.health_port, own.metrics_port} <= ports
    told = {port: answer.status for port in ports if (answer := asked(port, path))}
    assert told
    assert all(status in {401, 403, 404} for status in told.values()), told


def test_prometheus_reaches_the_metrics(own: Own) -> None:
    told = get(f"{own.http}/metrics")
    assert told.status == 200
    assert b"kvtier_picker_" in told.body
