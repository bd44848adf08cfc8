"""Which change of a spec replaces which pods (docs/user-guide/kubernetes.md, Change tiers)."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

ENGINE, PICKER = "case-engine", "case-picker"
BASE: Mapping[str, Any] = {"engine": {"tensorParallelSize": 2, "gpuMemory": "80Gi"}}


def templates(**spec: Any) -> dict[str, Any]:  # noqa: ANN401 - as in YAML
    """Pod templates by name of their Deployment."""
    built = build_objects(make_plan(resource(**{**BASE, **spec}), Observed()))
    return {
        each["metadata"]["name"]: each["spec"]["template"] for each in built if each["kind"] == "Deployment"
    }


@pytest.mark.parametrize(
    ("changes", "replaced"),
    [
        ({"replicas": 3}, []),
        ({"replicas": 9}, [PICKER]),
        ({"cpu": "200Gi"}, [ENGINE, PICKER]),
        ({"tiers": {"cpu": {"capacity": "100Gi", "hugepages": {"policy": "Require"}}}}, [ENGINE]),
        ({"tiers": {"cpu": {"capacity": "100Gi", "memlock": {"policy": "Require"}}}}, [ENGINE]),
        ({"engine": {**BASE["engine"], "extraArgs": ["--enforce-eager"]}}, [ENGINE]),
        ({"engine": {**BASE["engine"], "gpuMemory": "141Gi"}}, [PICKER]),
        ({"engine": {**BASE["engine"], "kvCacheMemory": "30Gi"}}, [ENGINE, PICKER]),
        ({"router": {"weights": {"cpuPrefix": 3}}}, [PICKER]),
        ({"router": {"flavor": "gaie"}}, [PICKER]),
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
