"""No handler falls over what admission lets pass: it is acted on, or refused in its status."""

from collections.abc import Iterator
from itertools import count
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from kubernetes import client
from tests.cases.generated import resources
from tests.cluster.harness.api.account import Account
from tests.cluster.harness.api.kvcachetiers import KVCacheTiers, RefusedError
from tests.cluster.harness.operator.operator import Operator, running_operator
from tests.cluster.harness.providers.provider import Cluster
from tests.shared.waiting import eventually

NAMESPACE: Final = "generated"
_numbers = count()


@pytest.fixture(scope="module")
def tiers(busy_cluster: Cluster) -> Iterator[KVCacheTiers]:
    with busy_cluster.client() as api:
        client.CoreV1Api(api).create_namespace({"metadata": {"name": NAMESPACE}})
        yield KVCacheTiers(api, NAMESPACE)


@pytest.fixture(scope="module")
def operator(account: Account, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    folder = tmp_path_factory.mktemp("generated")
    with running_operator(
        account.kubeconfig(folder), folder / "operator.log", namespaces=(NAMESPACE,)
    ) as running:
        yield running


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(resource=resources())
def test_no_handler_raises(tiers: KVCacheTiers, operator: Operator, resource: dict[str, Any]) -> None:
    name = f"generated-{next(_numbers)}"
    resource["metadata"] = {"name": name, "namespace": NAMESPACE}
    try:
        created = tiers.create(resource)
    except RefusedError:
        return

    def conditions() -> list[dict[str, Any]]:
        status = tiers.get(name).get("status", {})
        is_seen = status.get("observedGeneration") == created["metadata"]["generation"]
        return status.get("conditions", []) if is_seen else []

    try:
        told = eventually(conditions, f"conditions of {name}")
        assert all(each["message"] and each["reason"] for each in told)
        assert "Traceback" not in operator.process.log.read_text()
    finally:
        tiers.delete(name)
