"""Pickers' accounts and rights as the planner makes them, in a namespace."""

from collections.abc import Mapping
from typing import Any, Final

from kubernetes import utils
from tests.cluster.harness.api.account import Account
from tests.cluster.harness.providers.provider import Cluster

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.spec.router import Flavor
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

_KINDS: Final = ("ServiceAccount", "Role", "RoleBinding")


def made_accounts(cluster: Cluster, namespace: str, *, elect: bool = False) -> Mapping[Flavor, Account]:
    """Makes an account for a picker of each flavour, with what a resource of that flavour gives it.

    Args:
        cluster: Where.
        namespace: Where there.
        elect: Whether upstream's pickers are two, which elect a leader.
    """
    accounts = {}
    with cluster.client() as api:
        for flavor in Flavor:
            pickers = 2 if elect and flavor is not Flavor.BUILTIN else 1
            made = [
                document for document in _objects(namespace, flavor, pickers) if document["kind"] in _KINDS
            ]
            for each in made:
                utils.create_from_dict(api, each)
            [binding] = [document for document in made if document["kind"] == "RoleBinding"]
            accounts[flavor] = Account(cluster, namespace, binding["subjects"][0]["name"])
    return accounts


def _objects(namespace: str, flavor: Flavor, pickers: int) -> tuple[dict[str, Any], ...]:
    resource = {
        "apiVersion": "kvtier.dev/v1alpha1",
        "kind": "KVCacheTier",
        "metadata": {"name": flavor.value, "namespace": namespace},
        "spec": {
            "model": {"name": "Qwen/Qwen3-32B"},
            "tiers": {"cpu": {"capacity": "100Gi"}},
            "router": {"flavor": flavor.value, "replicas": pickers},
        },
    }
    return build_objects(make_plan(parse_resource(resource, "pickers"), Observed()))
