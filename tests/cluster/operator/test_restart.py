"""A restart of the operator, on an API server where no other operator writes."""

from pathlib import Path

from tests.cases.pod_template import TEMPLATE
from tests.cluster.harness.api.account import Account
from tests.cluster.harness.operator.operator import running_operator
from tests.cluster.harness.providers.provider import Cluster
from tests.cluster.operator.world import World, create_namespace, resource
from tests.shared.waiting import eventually


def test_a_restart_writes_nothing(quiet_server: Cluster, own_account: Account, tmp_path: Path) -> None:
    kubeconfig = own_account.kubeconfig()
    with quiet_server.client() as api:
        world = World(api, create_namespace(api, "restarted"))
        with running_operator(kubeconfig, tmp_path / "first.log") as first:
            world.create(resource())
            world.create(resource("rejected", engine={"tensorParallelSize": 3}))
            world.create(resource("templated", engine={"podTemplate": TEMPLATE}))
            world.until_settled("rejected")
            world.until_settled("templated")
            world.until_settled()
            world.make_ready()
            world.until_condition("EnginesReady", status="True")
            assert first.writes() > 10
        with running_operator(kubeconfig, tmp_path / "second.log") as second:
            eventually(lambda: second.metrics().get("kvtier_reconciles_total", 0) >= 3, "reconciliations")
            assert second.writes() == 0
            world.create(resource("new"))
            world.until_settled("new")
            new_objects = len(world.children("new"))
            told = len([event for event in world.events() if event[0] == "Warning"])
            assert second.writes() <= new_objects + 1 + told
            assert second.writes("Deployment") == 2
