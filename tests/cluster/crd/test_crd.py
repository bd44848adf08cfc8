"""The CRD on a real API server: accepted as it is, and doing what it promises."""

import json
from collections.abc import Iterator

import pytest
from kubernetes import client
from tests.cases.kvcachetier import document
from tests.cluster.harness.api.kvcachetiers import KVCacheTiers, RefusedError

from kvtier_operator.api.resource import PENDING
from kvtier_operator.api.schema.crd import CRD_NAME


@pytest.fixture
def stored(kvcachetiers: KVCacheTiers) -> Iterator[str]:
    """Name of a minimal resource that is there for one test."""
    name = "stored"
    kvcachetiers.create(document({"metadata.name": name}))
    yield name
    kvcachetiers.delete(name)


@pytest.mark.usefixtures("kvcachetiers")
def test_is_established_without_complaint_about_its_schema(api: client.ApiClient) -> None:
    definition = client.ApiextensionsV1Api(api).read_custom_resource_definition(CRD_NAME)
    conditions = {condition.type: condition.status for condition in definition.status.conditions}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}  # no NonStructuralSchema
    assert definition.status.accepted_names.short_names == ["kvct"]
    assert definition.status.accepted_names.categories == ["kvtier"]


def test_fills_in_every_default(kvcachetiers: KVCacheTiers) -> None:
    assert kvcachetiers.create(document({}), dry_run=True)["spec"] == {
        "model": {"name": "Qwen/Qwen3-32B"},
        "replicas": 1,
        "backend": "KVTier",
        "engine": {
            "device": "gpu",
            "tensorParallelSize": 1,
            "dataParallelSize": 1,
            "kvCacheDtype": "auto",
            "port": 8000,
            "drainSeconds": 120,
            "rollout": {"strategy": "InPlace"},
            "resources": {},
        },
        "tiers": {
            "cpu": {"capacity": "100Gi", "hugepages": {"policy": "Never"}, "memlock": {"policy": "Prefer"}}
        },
        "router": {
            "flavor": "llm-d",
            "replicas": 1,
            "weights": {"queue": 2, "kvCacheUtilization": 2, "gpuPrefix": 1, "cpuPrefix": 1, "diskPrefix": 0},
            "failureMode": "FailOpen",
            "kvEvents": False,
            "exposeEndpoint": False,
            "hints": "Accept",
            "shareFrom": "Header",
            "networkPolicy": {},
            "resources": {},
        },
        "observability": {
            "serviceMonitor": False,
            "prometheusRule": False,
            "dashboard": False,
            "intervalSeconds": 15,
        },
    }


def test_fills_in_defaults_below_what_is_given(kvcachetiers: KVCacheTiers) -> None:
    spec = kvcachetiers.create(document({"spec.router.weights.diskPrefix": 1}), dry_run=True)["spec"]
    assert spec["router"]["weights"] == {
        "queue": 2,
        "kvCacheUtilization": 2,
        "gpuPrefix": 1,
        "cpuPrefix": 1,
        "diskPrefix": 1,
    }


def test_keeps_what_passes_through_to_the_pod(kvcachetiers: KVCacheTiers) -> None:
    affinity = {"podAffinity": {"anything": [{"goes": "here"}]}}
    value_from = {"secretKeyRef": {"name": "s", "key": "k"}}
    engine = {"affinity": affinity, "env": [{"name": "A", "valueFrom": value_from}]}
    kept = kvcachetiers.create(document({"spec.engine": engine}), dry_run=True)["spec"]["engine"]
    assert kept["affinity"] == affinity
    assert kept["env"] == engine["env"]


def test_drops_unknown_fields_for_clients_that_do_not_ask(api: client.ApiClient, stored: str) -> None:
    """The operator's own reads stay clean, whatever an old client sends."""
    kept = client.CustomObjectsApi(api).patch_namespaced_custom_object(
        "kvtier.dev",
        "v1alpha1",
        "default",
        "kvcachetiers",
        stored,
        {"spec": {"replicas": 3, "unknown": 1}},
        field_validation="Ignore",
    )
    assert kept["spec"]["replicas"] == 3
    assert "unknown" not in kept["spec"]


def test_model_name_is_immutable(kvcachetiers: KVCacheTiers, stored: str) -> None:
    changed = kvcachetiers.get(stored)
    changed["spec"]["model"]["name"] = "Qwen/Qwen3-8B"
    with pytest.raises(RefusedError) as refused:
        kvcachetiers.replace(changed)
    assert "spec.model.name" in refused.value.message
    assert "model.name is immutable; make a new KVCacheTier for another model" in refused.value.message


def test_everything_else_can_change(kvcachetiers: KVCacheTiers, stored: str) -> None:
    changed = kvcachetiers.get(stored)
    changed["spec"]["tiers"]["cpu"]["capacity"] = "200Gi"
    assert kvcachetiers.replace(changed)["spec"]["tiers"]["cpu"]["capacity"] == "200Gi"


def test_status_is_a_subresource_of_its_own(kvcachetiers: KVCacheTiers, stored: str) -> None:
    condition = {
        "type": "Ready",
        "status": "True",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-11-20T12:00:00Z",
        "reason": "EnginesReady",
        "message": "4 of 4 engines are ready",
    }
    status = {
        "observedGeneration": 1,
        "tiers": {"cpu": {"bytes": 100 * 2**30, "tokens": 409600, "source": "Observed"}},
        "router": {"entries": {"cpuPrefix": 6400}, "tokensPerEntry": 64, "configHash": "abc"},
        "conditions": [condition],
    }
    written = kvcachetiers.get(stored) | {"status": status}
    written["spec"]["replicas"] = 9
    kvcachetiers.replace(written, subresource="status")
    after = kvcachetiers.get(stored)
    assert after["status"] == status
    assert after["spec"]["replicas"] == 1


def test_status_does_not_change_with_the_rest(kvcachetiers: KVCacheTiers, stored: str) -> None:
    kvcachetiers.replace(kvcachetiers.get(stored) | {"status": {"observedGeneration": 7}})
    assert kvcachetiers.get(stored)["status"] == {"conditions": [PENDING]}


def test_a_condition_stands_once(kvcachetiers: KVCacheTiers, stored: str) -> None:
    condition = {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": "2026-11-20T12:00:00Z",
        "reason": "EnginesReady",
        "message": "",
    }
    written = kvcachetiers.get(stored) | {"status": {"conditions": [condition, condition]}}
    with pytest.raises(RefusedError, match="Duplicate value"):
        kvcachetiers.replace(written, subresource="status")


def test_scales(kvcachetiers: KVCacheTiers, stored: str) -> None:
    status = {"replicas": 1, "readyReplicas": 1, "selector": "kvtier.dev/name=stored"}
    kvcachetiers.replace(kvcachetiers.get(stored) | {"status": status}, subresource="status")
    scale = kvcachetiers.get(stored, subresource="scale")
    assert scale["spec"] == {"replicas": 1}
    assert scale["status"] == {"replicas": 1, "selector": "kvtier.dev/name=stored"}
    scale["spec"]["replicas"] = 4
    kvcachetiers.replace(scale, subresource="scale")
    assert kvcachetiers.get(stored)["spec"]["replicas"] == 4


def test_prints_what_a_person_looks_for(
    api: client.ApiClient, kvcachetiers: KVCacheTiers, stored: str
) -> None:
    status = {"replicas": 3, "readyReplicas": 2, "router": {"url": "http://a/v1"}}
    kvcachetiers.replace(kvcachetiers.get(stored) | {"status": status}, subresource="status")
    answer = api.call_api(
        *api.param_serialize(
            "GET",
            f"/apis/kvtier.dev/v1alpha1/namespaces/default/kvcachetiers/{stored}",
            header_params={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"},
        )
    )
    body = json.loads(answer.read())
    columns = [definition["name"] for definition in body["columnDefinitions"] if definition["priority"] == 0]
    names = [definition["name"] for definition in body["columnDefinitions"]]
    cells = dict(zip(names, body["rows"][0]["cells"], strict=True))
    assert columns == ["Name", "Model", "Ready", "Reason", "Engines", "Replicas", "URL", "CPU", "Age"]
    shown = {name: cells[name] for name in ("Model", "Engines", "Replicas", "URL", "CPU")}
    assert shown == {
        "Model": "Qwen/Qwen3-32B",
        "Engines": 2,
        "Replicas": 3,
        "URL": "http://a/v1",
        "CPU": "100Gi",
    }
