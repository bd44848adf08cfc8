"""What the doctor says of real stores, by the resource's fields and without a secret."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.shared.stores import MAXMEMORY, Store, running

from kvtier_operator.doctor.store import store
from kvtier_operator.doctor.verdict import Severity, lines
from kvtier_operator.planning.pod.demands import RemoteDemand

MIB = 1 << 20
PASSWORD = "correct-horse"  # noqa: S105 - of this test's server alone


@pytest.fixture
def server(tmp_path: Path) -> Generator[Store]:
    with running("valkey", tmp_path / "server") as running_store:
        yield running_store


def demand(server: Store, **changes: object) -> RemoteDemand:
    asked = RemoteDemand(
        managed=False,
        url=f"redis://{server.address}",
        share="team/model",
        capacity_bytes=200 * MIB,
        credentials_path="",
        ca_path="",
    )
    return replace(asked, **changes)  # type: ignore[arg-type]


def warnings(asked: RemoteDemand) -> list[str]:
    verdicts = list(store(asked))
    assert {verdict.severity for verdict in verdicts} <= {Severity.PASS, Severity.WARN}
    assert {verdict.check for verdict in verdicts} == {"store"}
    return [verdict.message for verdict in verdicts if verdict.severity is Severity.WARN]


def test_a_store_that_will_do(server: Store) -> None:
    said = lines(store(demand(server)))
    assert said[0] == f"Pass  store: {server.address} answers"
    assert "may read and write kvtier:team/model:*" in said[1]
    assert not warnings(demand(server))
    assert server.ask("DBSIZE") == 0


def test_a_store_that_is_gone(server: Store) -> None:
    server.process.kill()
    [line] = warnings(demand(server))
    assert line.startswith(f"spec.tiers.remote.url: {server.address}: Connection refused; see that")
    assert line.endswith("the engine serves without the store until then")
    [line] = warnings(demand(server, managed=True))
    assert line.startswith(f"spec.tiers.remote.managed: {server.address}: Connection refused")


def test_of_mooncake_the_master_is_looked_for(server: Store) -> None:
    """Any port that listens: the doctor's image cannot ask more."""
    asked = demand(server, url=f"mooncake://{server.address}")
    [said] = lines(store(asked))
    assert said.startswith(f"Pass  store: the master {server.address} takes connections; kvtier bench remote")
    server.process.kill()
    [line] = warnings(asked)
    assert line.startswith(f"spec.tiers.remote.url: {server.address}: Connection refused; see that a master")


def test_bounds_are_of_the_capacity_and_the_url(server: Store) -> None:
    [line] = warnings(demand(server, capacity_bytes=400 * MIB))
    assert line == (
        "spec.tiers.remote.capacity: a capacity of 400.0 MiB is more than the server's maxmemory, "
        f"{MAXMEMORY[:3]}.0 MiB; lower it or raise that"
    )
    server.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
    [line] = warnings(demand(server))
    assert line.startswith("spec.tiers.remote.url: maxmemory-policy is noeviction")


def test_no_secret_is_told(server: Store, tmp_path: Path) -> None:
    credentials = tmp_path / "credentials"
    asked = demand(server, credentials_path=str(credentials))
    [line] = warnings(asked)
    assert line.startswith(
        f"spec.tiers.remote.credentials: {credentials}/password: No such file or directory"
    )
    credentials.mkdir()
    (credentials / "username").write_text("engines")
    (credentials / "password").write_text(PASSWORD)
    [line] = warnings(asked)
    assert line.startswith(f"spec.tiers.remote.credentials: {server.address}: WRONGPASS")
    server.ask("ACL", "SETUSER", "engines", "on", f">{PASSWORD}", "~*", "+ping", "+info", "+get", "+acl")
    [denied] = warnings(asked)
    assert denied.startswith("spec.tiers.remote.credentials: rights: SET, STRLEN, DEL of kvtier:team/model:*")
    assert PASSWORD not in f"{line}{denied}"


def test_a_certificate_that_is_none(server: Store, tmp_path: Path) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_text("no certificate")
    [line] = warnings(demand(server, url=f"rediss://{server.address}", ca_path=str(authority)))
    assert line.startswith(f"spec.tiers.remote.tls: {authority}: ")
