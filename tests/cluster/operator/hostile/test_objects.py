"""What objects that tenants make for it cost the operator of all in memory."""

from base64 import b64encode
from pathlib import Path
from random import Random

from tests.cluster.harness.api.account import Account
from tests.cluster.harness.operator.operator import running_operator
from tests.cluster.harness.providers.provider import Cluster
from tests.cluster.operator.hostile.test_engines import LIMIT_BYTES
from tests.cluster.operator.world import World, create_namespace, resource

from kvtier_operator.planning.base.names import MANAGED_BY, MANAGED_BY_LABEL

_MANY = 200
_LARGE_BYTES = 768 << 10
_A_LIST = 90
"""Of each kind: fewer than one list of them has."""
_ANNOTATIONS_BYTES = 190 << 10
"""What all annotations of an object may have, less a quarter for base64."""
_FEW_BYTES = 48 << 20


def _stuffing(number: int, size_bytes: int) -> str:
    """What no compression makes shorter."""
    return b64encode(Random(number).randbytes(size_bytes)).decode()  # noqa: S311 - a test's


def test_what_has_our_label_and_is_nobodys_is_not_kept(
    quiet_server: Cluster, own_account: Account, tmp_path: Path
) -> None:
    with quiet_server.client() as api:
        tenant = World(api, create_namespace(api, "tenant"))
        labels = {MANAGED_BY_LABEL: MANAGED_BY}
        for number in range(_MANY):
            body = {"metadata": {"name": f"large-{number}", "labels": labels}}
            body["data"] = {"x": _stuffing(number, _LARGE_BYTES)}
            tenant.core.create_namespaced_config_map(tenant.namespace, body)
        world = World(api, create_namespace(api, "neighbour"))
        world.create(resource())
        with running_operator(own_account.kubeconfig(), tmp_path / "operator.log") as operator:
            world.until_settled()
            assert world.children()
            assert operator.peak_bytes() < LIMIT_BYTES


def test_what_others_write_into_annotations_does_not_matter_when_a_name_is_looked_for(
    quiet_server: Cluster, own_account: Account, tmp_path: Path
) -> None:
    with quiet_server.client() as api:
        world = World(api, create_namespace(api, "tenant"))
        for number in range(_A_LIST):
            metadata = {
                "name": f"large-{number}",
                "annotations": {"x": _stuffing(number, _ANNOTATIONS_BYTES)},
            }
            for kind in ("ServiceAccount", "ConfigMap"):
                world.make("v1", kind, {"metadata": metadata})
            world.make("rbac.authorization.k8s.io/v1", "Role", {"metadata": metadata, "rules": []})
            world.make("policy/v1", "PodDisruptionBudget", {"metadata": metadata})
        with running_operator(own_account.kubeconfig(), tmp_path / "operator.log") as operator:
            elsewhere = World(api, create_namespace(api, "elsewhere"))
            elsewhere.create(resource())
            elsewhere.until_settled()
            before_bytes = operator.peak_bytes()
            world.create(resource())
            world.until_settled()
            assert world.children()
            assert operator.peak_bytes() - before_bytes < _FEW_BYTES
