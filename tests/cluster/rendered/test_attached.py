"""Pods of others are taken by a real API server with the tiers, if they were without."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from kubernetes import client
from tests.cases.attached import IMAGE, attach_plan, vllm_pod
from tests.cases.valid_pods import PODS
from tests.cluster.harness.operator.shipped import RESTRICTED

from kvtier_operator.planning.attach.left_alone import LeftAlone
from kvtier_operator.planning.attach.plan import AttachPlan
from kvtier_operator.planning.attach.pod import attach_pod

NAMESPACE, STRICTEST = "attached-pods", "attached-restricted"
_DISK = {"capacity": "10Gi"}
PLANS = [
    attach_plan(),
    attach_plan(disk={**_DISK, "volume": {"emptyDir": {}}}),
    attach_plan(disk={**_DISK, "volume": {"ephemeral": {}}}),
    attach_plan(cpu_fields={"hugepages": {"policy": "Require"}}),
]


@pytest.fixture(scope="module", autouse=True)
def namespaces(api: client.ApiClient) -> Iterator[None]:
    core = client.CoreV1Api(api)
    for name, labels in ((NAMESPACE, {}), (STRICTEST, RESTRICTED)):
        core.create_namespace({"metadata": {"name": name, "labels": labels}})
        for account in ("default", "owner"):
            core.create_namespaced_service_account(name, {"metadata": {"name": account}})
    yield
    for name in (NAMESPACE, STRICTEST):
        core.delete_namespace(name)


def _class_of(api: client.ApiClient, one: dict[str, Any], namespace: str = NAMESPACE) -> str:
    """The class of service that the API server gives a pod; ApiException where it refuses it."""
    body = {"apiVersion": "v1", "kind": "Pod", **one, "metadata": {**one["metadata"], "name": "one"}}
    taken = client.CoreV1Api(api).create_namespaced_pod(
        namespace, body, dry_run="All", field_validation="Strict"
    )
    return str(taken.status.qos_class)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(one=PODS, plan=st.sampled_from(PLANS))
def test_a_valid_pod_stays_valid_and_of_its_class(
    api: client.ApiClient, one: dict[str, Any], plan: AttachPlan
) -> None:
    patched = attach_pod(plan, one, IMAGE)
    if isinstance(patched, LeftAlone):
        event(f"left alone: {patched.reason}")
        return
    try:
        before = _class_of(api, one)
    except client.ApiException:
        assume(False)  # noqa: FBT003 - its only parameter
        return
    event(before)
    assert _class_of(api, patched) == before


@pytest.mark.parametrize("of", ["pod", "container"])
def test_a_pod_of_the_strictest_level_stays_within_it(api: client.ApiClient, of: str) -> None:
    user = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    rights = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    own = rights | (user if of == "container" else {})
    guaranteed = {"cpu": "4", "memory": "32Gi"}
    one = vllm_pod(resources={"requests": guaranteed, "limits": guaranteed}, securityContext=own)
    if of == "pod":
        one["spec"]["securityContext"] = user
    assert _class_of(api, one, STRICTEST) == "Guaranteed"
    patched = attach_pod(PLANS[0], one, IMAGE)
    assert not isinstance(patched, LeftAlone)
    assert _class_of(api, patched, STRICTEST) == "Guaranteed"
