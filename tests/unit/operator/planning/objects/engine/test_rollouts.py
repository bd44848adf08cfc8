"""Which change of a spec replaces which pods (docs/user-guide/run/kubernetes.md, Change tiers)."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_operator.planning.images import CONNECTOR_VERSION, ImageSource, image_source
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

ENGINE, PICKER = "case-engine", "case-picker"
BASE: Mapping[str, Any] = {"engine": {"tensorParallelSize": 2, "gpuMemory": "80Gi"}}


def templates(images: ImageSource | None = None, **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - as in YAML
    """Pod templates by name of their Deployment."""
    observed = Observed(images=images or ImageSource())
    built = build_objects(make_plan(resource(**{**BASE, **spec}), observed))
    return {
        document["metadata"]["name"]: document["spec"]["template"]
        for document in built
        if document["kind"] == "Deployment"
    }


@pytest.mark.parametrize(
    ("changes", "replaced"),
    [
        ({"replicas": 3}, []),
        ({"replicas": 9}, [PICKER]),
        ({"autoscaling": {"maxReplicas": 8}}, []),
        ({"autoscaling": {"maxReplicas": 9}}, [PICKER]),
        ({"cpu": "200Gi"}, [ENGINE, PICKER]),
        ({"tiers": {"cpu": {"capacity": "100Gi", "hugepages": {"policy": "Require"}}}}, [ENGINE]),
        ({"tiers": {"cpu": {"capacity": "100Gi", "memlock": {"policy": "Require"}}}}, [ENGINE]),
        ({"engine": {**BASE["engine"], "extraArgs": ["--enforce-eager"]}}, [ENGINE]),
        ({"engine": {**BASE["engine"], "drainSeconds": 300}}, [ENGINE, PICKER]),
        ({"engine": {**BASE["engine"], "rollout": {"strategy": "Surge"}}}, []),
        ({"engine": {**BASE["engine"], "gpuMemory": "141Gi"}}, [PICKER]),
        ({"engine": {"tensorParallelSize": 2, "gpu": "b200"}}, [PICKER]),
        ({"engine": {"tensorParallelSize": 2, "gpu": "mi325x"}}, [ENGINE, PICKER]),
        ({"engine": {**BASE["engine"], "kvCacheMemory": "30Gi"}}, [ENGINE, PICKER]),
        ({"router": {"weights": {"cpuPrefix": 3}}}, [PICKER]),
        ({"router": {"flavor": "gaie"}}, [PICKER]),
        ({"router": {"resources": {"limits": {"cpu": "500m"}}}}, [PICKER]),
        ({"router": {"nodeSelector": {"pool": "general"}}}, [PICKER]),
        ({"engine": {**BASE["engine"], "priorityClassName": "inference"}}, [ENGINE]),
        ({"imagePullSecrets": [{"name": "mirror"}]}, [ENGINE, PICKER]),
        ({"engine": {**BASE["engine"], "podTemplate": {"metadata": {"labels": {"team": "a"}}}}}, [ENGINE]),
        ({"router": {"podTemplate": {"spec": {"schedulerName": "volcano"}}}}, [PICKER]),
        # what the pods have already
        ({"engine": {**BASE["engine"], "podTemplate": {"spec": {"serviceAccountName": ENGINE}}}}, []),
        ({"router": {"podTemplate": {"metadata": {}, "spec": {"containers": [{"name": "picker"}]}}}}, []),
        ({"router": {"gateway": {"parentRef": {"name": "g"}, "provider": "agentgateway"}}}, []),
        ({"observability": {"serviceMonitor": True, "dashboard": True}}, []),
    ],
    ids=str,
)
def test_a_change_replaces_only_the_pods_that_it_concerns(
    changes: Mapping[str, Any], replaced: list[str]
) -> None:
    before, after = templates(), templates(**changes)
    assert {name for name in before if before[name] != after[name]} == set(replaced)


@pytest.mark.parametrize(
    ("settings", "replaced"),
    [
        ({"references": ["lmcache=a/b:1", "vllmCpu=a/c:1", "pickerGaie=a/d:1"]}, []),
        (
            {
                "repository": "kvtier/operator",
                "references": [f"connector=registry.invalid/kvtier/connector:{CONNECTOR_VERSION}"],
            },
            [],
        ),
        ({"references": ["pickerLlmD=a/b:1"]}, [PICKER]),
        ({"references": ["doctor=a/b:1"]}, [ENGINE]),
        ({"references": ["connector=a/b:1"]}, [ENGINE]),
        ({"registry": "registry.example"}, [ENGINE, PICKER]),
        ({"pull_secrets": ["mirror"]}, [ENGINE, PICKER]),
    ],
    ids=str,
)
def test_an_installation_s_images_replace_only_the_pods_that_have_them(
    settings: Mapping[str, Any], replaced: list[str]
) -> None:
    before, after = templates(), templates(image_source(**settings))
    assert {name for name in before if before[name] != after[name]} == set(replaced)
