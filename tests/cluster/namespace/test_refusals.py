"""What a plan says that a namespace refuses, a real API server refuses, and nothing else."""

from collections.abc import Iterator
from contextlib import nullcontext
from itertools import count
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, example, given, settings
from kubernetes import client
from tests.cases.planning import resource

from kvtier_operator.planning.cluster.namespace.limit_range import limit_range_from_object
from kvtier_operator.planning.cluster.namespace.namespace import Namespace, demand, refusals
from kvtier_operator.planning.cluster.namespace.quota import quota_from_object
from kvtier_operator.planning.cluster.namespace.workload import workload
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.verdict import CheckResult, Outcome

_NUMBERS = count(1)
_ACCOUNTS = ("case-engine", "case-picker")
_PAGES = {"cpu": {"capacity": "100Gi", "hugepages": {"policy": "Require"}}}
_SLOW_IS_FINE = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def core(api: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(api)


def _namespace(core: client.CoreV1Api) -> str:
    """A new one: an admission plugin looks it up instead of trusting what it has seen so far."""
    name = f"refusals-{next(_NUMBERS)}"
    core.create_namespace({"metadata": {"name": name}})
    for account in _ACCOUNTS:
        core.create_namespaced_service_account(name, {"metadata": {"name": account}})
    return name


def _plan(**spec: Any) -> Plan:  # noqa: ANN401 - as in YAML
    return make_plan(resource(**spec), Observed())


def _pods(plan: Plan) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every pod that a plan's Deployments want, with the Deployment's name; none that a rollout adds."""
    for each in build_objects(plan):
        if each["kind"] == "Deployment":
            template = each["spec"]["template"]
            for _ in range(workload(each).pods):
                metadata = {**template["metadata"], "generateName": "pod-"}
                yield each["metadata"]["name"], {"metadata": metadata, "spec": template["spec"]}


def _refused(core: client.CoreV1Api, namespace: str, plan: Plan) -> dict[str, str]:
    """Deployments of which a pod is refused, with the server's words; what is taken counts."""
    found = {}
    for name, pod in _pods(plan):
        try:
            core.create_namespaced_pod(namespace, pod)
        except client.ApiException as error:
            found[name] = str(error.body)
    return found


def _said(plan: Plan, namespace: Namespace) -> list[CheckResult]:
    return [each for each in refusals(plan, namespace) if each.outcome is Outcome.REJECT]


CPU = st.sampled_from([None, "100m", "500m", "1", "2", "2500m", "8"])
MEMORY = st.sampled_from([None, "64Mi", "1Gi", "1407Mi", "2Gi", "128Gi", "1Ti"])
GPUS = st.sampled_from([None, None, "1", "2", "4"])
AMOUNTS = st.fixed_dictionaries({"cpu": CPU, "memory": MEMORY, "nvidia.com/gpu": GPUS}).map(
    lambda amounts: {name: value for name, value in amounts.items() if value}
)
RATIO = st.sampled_from([{}, {}, {"cpu": "1"}, {"cpu": "3"}, {"memory": "1500m"}, {"memory": "2"}])
PARTS = st.fixed_dictionaries({}, optional={"min": AMOUNTS, "max": AMOUNTS, "maxLimitRequestRatio": RATIO})
DEFAULTS = st.fixed_dictionaries({}, optional={"default": AMOUNTS, "defaultRequest": AMOUNTS})
RESOURCES = st.sampled_from(
    [
        {},
        {"requests": {"cpu": "500m"}},
        {"limits": {"cpu": "2"}},
        {"requests": {"cpu": "1"}, "limits": {"cpu": "8"}},
        {"requests": {"memory": "4Gi"}},
    ]
)
_ONE = {"type_": "Container", "parts": {}, "defaults": {}, "resources": {}, "backend": "KVTier"}
BACKEND = st.sampled_from(["KVTier", "LMCacheMP"])


@_SLOW_IS_FINE
@given(
    type_=st.sampled_from(["Container", "Container", "Pod"]),
    parts=PARTS,
    defaults=DEFAULTS,
    resources=RESOURCES,
    backend=BACKEND,
)
@example(**_ONE | {"parts": {"max": {"cpu": "500m"}}})
@example(**_ONE | {"parts": {"max": {"nvidia.com/gpu": "1"}}})
@example(**_ONE | {"defaults": {"default": {"cpu": "500m"}}})
@example(**_ONE | {"defaults": {"defaultRequest": {"nvidia.com/gpu": "1"}}})
def test_limit_ranges(  # noqa: PLR0913, PLR0917 - that many things differ
    core: client.CoreV1Api,
    type_: str,
    parts: dict[str, Any],
    defaults: dict[str, Any],
    resources: dict[str, Any],
    backend: str,
) -> None:
    item = {"type": type_, **parts, **(defaults if type_ == "Container" else {})}
    namespace = _namespace(core)
    body = {"metadata": {"name": "team"}, "spec": {"limits": [item]}}
    try:
        made = core.create_namespaced_limit_range(namespace, body)
    except client.ApiException:
        return  # such as a minimum above the maximum
    document = core.api_client.sanitize_for_serialization(made)
    plan = _plan(replicas=1, backend=backend, tiers=_PAGES, engine={"resources": resources})
    said = _said(plan, Namespace(limit_ranges=(limit_range_from_object(document),)))
    refused = _refused(core, namespace, plan)
    assert {name for name in _ACCOUNTS if any(name in each.message for each in said)} == set(refused), (
        item,
        refused,
    )


COUNTED = (
    "pods",
    "count/pods",
    "cpu",
    "requests.cpu",
    "limits.cpu",
    "memory",
    "requests.memory",
    "limits.memory",
    "hugepages-2Mi",
    "requests.hugepages-2Mi",
    "requests.nvidia.com/gpu",
    "ephemeral-storage",
    "requests.ephemeral-storage",
    "limits.ephemeral-storage",
)
_UNITS = {"cpu": ("1m", 1000), "pods": ("1", 1)}


@_SLOW_IS_FINE
@given(
    name=st.sampled_from(COUNTED),
    off=st.sampled_from([-1, 0, 1]),
    others=st.sampled_from([0, 5]),
    resources=RESOURCES,
    backend=BACKEND,
    scope=st.sampled_from([None, None, "NotBestEffort", "BestEffort", "Terminating", "NotTerminating"]),
)
def test_quotas(  # noqa: PLR0913, PLR0917 - that many things differ
    core: client.CoreV1Api,
    name: str,
    off: int,
    others: int,
    resources: dict[str, Any],
    backend: str,
    scope: str | None,
) -> None:
    disk = {"disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}} if backend == "KVTier" else {}
    plan = _plan(replicas=2, backend=backend, tiers=_PAGES | disk, engine={"resources": resources})
    exact = _needed(plan, name)
    unit = "m" if "cpu" in name else ""
    hard, used = {name: f"{max(exact + off, 0) + others}{unit}"}, {name: f"{others}{unit}"}
    namespace = _namespace(core)
    spec = {"hard": hard} | ({"scopes": [scope]} if scope else {})
    try:
        made = core.create_namespaced_resource_quota(namespace, {"metadata": {"name": "team"}, "spec": spec})
    except client.ApiException:
        return  # a scope that has nothing to do with the resource
    status = {"status": {"hard": hard, "used": used}}
    made = core.patch_namespaced_resource_quota_status("team", namespace, status)
    found = quota_from_object(core.api_client.sanitize_for_serialization(made))
    said = _said(plan, Namespace(quotas=(found,)))
    refused = _refused(core, namespace, plan)
    assert bool(said) == bool(refused), (hard, said, refused)
    unset = {each.reason for each in said} & {"QuotaUnspecified"}
    assert bool(unset) == ("must specify" in str(refused))


def _needed(plan: Plan, name: str) -> int:
    """All of a resource that a plan asks for."""
    return demand(plan, Namespace()).of(name)


def test_volumes_made_with_pods(core: client.CoreV1Api) -> None:
    namespace = _namespace(core)
    item = {"type": "PersistentVolumeClaim", "max": {"storage": "1Ti"}}
    made = core.create_namespaced_limit_range(
        namespace, {"metadata": {"name": "team"}, "spec": {"limits": [item]}}
    )
    bounds = limit_range_from_object(core.api_client.sanitize_for_serialization(made))
    for capacity, is_refused in (("900Gi", False), ("1000Gi", True)):
        plan = _plan(tiers={"disk": {"capacity": capacity, "volume": {"ephemeral": {}}}})
        [claim] = [
            each["ephemeral"]["volumeClaimTemplate"]["spec"]
            for _, pod in _pods(plan)
            for each in pod["spec"]["volumes"]
            if "ephemeral" in each
        ]
        body = {"metadata": {"generateName": "claim-"}, "spec": claim}
        refused = pytest.raises(client.ApiException, match="maximum storage usage")
        with refused if is_refused else nullcontext():
            core.create_namespaced_persistent_volume_claim(namespace, body)
        assert bool(_said(plan, Namespace(limit_ranges=(bounds,)))) == is_refused
