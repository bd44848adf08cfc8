"""Two operators of one Lease: the one that leads is killed, or stops for longer than the Lease lasts."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kubernetes import client
from tests.cluster.harness.api.account import Account
from tests.cluster.harness.operator.operator import Operator, running_operator
from tests.cluster.harness.providers.provider import Cluster
from tests.cluster.operator.world import World, create_namespace, resource
from tests.shared.waiting import eventually

from kvtier_operator.lease_seconds import LEAST_LEASE_S

LEASE_S = LEAST_LEASE_S
LEASE = "kvtier-operator"
ENVIRONMENT = {"KVTIER_LEASE": LEASE, "KVTIER_LEASE_SECONDS": str(LEASE_S)}


@contextmanager
def candidate(account: Account, folder: Path, name: str) -> Iterator[Operator]:
    place = folder / name
    place.mkdir()
    with running_operator(account.kubeconfig(place), place / "log", env=ENVIRONMENT) as operator:
        yield operator


def leads(operator: Operator) -> bool:
    return operator.metrics()["kvtier_leader"] == 1


def leases_of_name(leases: client.CoordinationV1Api) -> list[client.V1Lease]:
    return [item for item in leases.list_lease_for_all_namespaces().items if item.metadata.name == LEASE]


def quiet(world: World, leader: Operator) -> dict[tuple[str, str], str]:
    """Versions of all objects, if the one that leads has nothing to do."""
    before, idle = world.versions(), leader.metrics()["kvtier_queue_depth"] == 0
    return before if idle and world.versions() == before else {}


@pytest.mark.long  # tests/unit/operator/reconcile/test_lease.py has the same without an API server
def test_one_writes_at_a_time(quiet_server: Cluster, own_account: Account, tmp_path: Path) -> None:
    with (
        quiet_server.client() as api,
        candidate(own_account, tmp_path, "first") as first,
    ):
        world = World(api, create_namespace(api, "led"))
        eventually(lambda: leads(first), "leader")
        with candidate(own_account, tmp_path, "second") as second:
            world.create(resource())
            world.until_settled()
            assert first.writes() > 10
            assert (leads(second), second.writes()) == (False, 0)

            leases = client.CoordinationV1Api(api)
            (made,) = leases_of_name(leases)
            leases.delete_namespaced_lease(LEASE, made.metadata.namespace)
            (anew,) = eventually(lambda: leases_of_name(leases), "the Lease made anew")
            assert anew.metadata.uid != made.metadata.uid
            assert anew.spec.holder_identity == made.spec.holder_identity
            assert (leads(first), leads(second)) == (True, False)

            first.process.kill()
            eventually(lambda: leads(second), "new leader")
            world.change(replicas=3)
            world.until_settled()
            assert second.writes("Deployment") == 1, "what the first one did is not done again"

            with candidate(own_account, tmp_path, "third") as third:
                for number in range(8):
                    world.create(resource(f"r{number}"))
                eventually(lambda: second.writes("Deployment") > 3, "work under way")
                second.process.send(signal.SIGSTOP)
                eventually(lambda: leads(third), "leader in place of the stopped one")
                for number in range(8):
                    world.until_settled(f"r{number}")
                before = eventually(lambda: quiet(world, third), "end of the work")
                second.process.send(signal.SIGCONT)
                assert second.process.wait() == 1
                assert "lost the Lease" in second.process.log.read_text()
                assert quiet(world, third) == before, "the one that was stopped has written"
                third.process.stop()
        with candidate(own_account, tmp_path, "fourth") as fourth:
            eventually(lambda: leads(fourth), "leader after one that gave the Lease up", LEASE_S * 2 / 3)
