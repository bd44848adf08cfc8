"""What a cluster says of a resource, for tests of what is shown of it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from tests.cases.planning import resource as planned_resource

from kvtier_common.metrics.text import Families, read_families
from kvtier_operator.cli.cluster.resource import (
    ENGINE_METRICS,
    PICKER_METRICS,
    ResourceView,
    Seen,
    resource_view,
)
from kvtier_operator.planning.base.node import Node
from kvtier_operator.planning.cluster.nodes_fit import nodes_fit
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.units import GIB
from kvtier_operator.reconcile.facts.cached_plan import UntimedCondition
from kvtier_operator.reconcile.facts.objects import DeploymentFacts
from kvtier_operator.reconcile.status.build import ready_condition
from kvtier_operator.reconcile.status.engines import engines_ready_condition
from kvtier_operator.reconcile.status.plan import accepted_condition, budget_fits, nodes_fit_condition
from kvtier_operator.reconcile.status.router import UnservedKinds, router_ready_condition

NOW: Final = datetime(2026, 11, 27, 20, 0, tzinfo=UTC)
_MADE: Final = "2026-11-27T17:00:00Z"
_PLAN: Final = make_plan(
    planned_resource(
        replicas=2,
        engine={"tensorParallelSize": 2, "kvCacheMemory": "10Gi"},
        tiers={"disk": {"capacity": "1Ti", "volume": {"ephemeral": {"storageClassName": "local-nvme"}}}},
        router={"weights": {"diskPrefix": 1}},
    ),
    Observed(),
)
"""What `resource` is a resource of."""


def _untimed_conditions() -> list[UntimedCondition]:
    """What the operator says of it where all is well."""
    size = {
        "memory": 900 * GIB,
        "nvidia.com/gpu": 4,
        "cpu": 96_000,
        "pods": 110,
        "ephemeral-storage": 900 * GIB,
    }
    nodes = [Node(name, {}, (), size, ready=True, schedulable=True) for name in ("node-a", "node-b")]
    engines, picker = (DeploymentFacts(pods, pods, pods, pods, observed_latest=True) for pods in (2, 1))
    well = [
        accepted_condition(_PLAN),
        budget_fits(_PLAN),
        nodes_fit_condition(nodes_fit(_PLAN, nodes)),
        engines_ready_condition(engines, (), ()),
        router_ready_condition(picker, (), (), UnservedKinds()),
    ]
    return [*well, ready_condition(well)]


_WELL: Final = {condition.type: condition for condition in _untimed_conditions()}

ENGINE_TEXT: Final = """\
vllm:prefix_cache_queries_total{engine="0"} 1000000.0
vllm:prompt_tokens_cached_by_source_total{engine="0",source="device"} 400000.0
vllm:prompt_tokens_cached_by_source_total{engine="0",source="host"} 200000.0
vllm:prompt_tokens_cached_by_source_total{engine="0",source="disk"} 50000.0
vllm:prompt_tokens_cached_by_source_total{engine="0",source="external_unspecified"} 0.0
vllm:kv_offload_load_time_total{engine="0"} 5.0
vllm:request_prefill_kv_computed_tokens_sum{engine="0"} 350000.0
vllm:request_prefill_time_seconds_sum{engine="0"} 70.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kvtier_cpu_capacity_bytes{engine="0"} 107374182400.0
vllm:kvtier_cpu_capacity_tokens{engine="0"} 409600.0
vllm:kvtier_cpu_used_bytes{engine="0"} 53687091200.0
vllm:kvtier_cpu_evicted_chunks_total{engine="0"} 0.0
vllm:kvtier_cpu_growing{engine="0"} 0.0
vllm:kvtier_disk_capacity_bytes{engine="0"} 1099511627776.0
vllm:kvtier_disk_capacity_tokens{engine="0"} 4194176.0
vllm:kvtier_disk_used_bytes{engine="0"} 109941096448.0
vllm:kvtier_disk_degraded{engine="0"} 0.0
vllm:kvtier_disk_pays{engine="0"} 1.0
"""
"""An engine computes 5,000 tokens a second; a fifth of what it loaded was on disk. Chunks are of 16 MiB."""

PICKER_TEXT: Final = """\
llm_d_epp_prefix_indexer_hit_ratio_sum{plugin_type="x"} 54.0
llm_d_epp_prefix_indexer_hit_ratio_count{plugin_type="x"} 100.0
"""
BUILTIN_TEXT: Final = """\
kvtier_picker_pods 2.0
kvtier_picker_pods_stale 1.0
kvtier_picker_picks_total{pod="a",endpoint="1"} 30.0
kvtier_picker_picks_total{pod="b",endpoint="2"} 12.0
kvtier_picker_prompt_tokens_total 1000.0
kvtier_picker_predicted_hit_tokens_total{tier="gpu"} 300.0
kvtier_picker_predicted_hit_tokens_total{tier="cpu"} 600.0
kvtier_picker_index_blocks{pod="a",tier="cpu"} 25.0
kvtier_picker_tier_capacity_blocks{pod="a",tier="cpu"} 100.0
"""


NONE: Final[Mapping[str, float]] = {}


def engine_metrics(text: str = ENGINE_TEXT, changes: Mapping[str, float] = NONE) -> Families:
    """An engine's metrics, with values of some samples by the end of their names."""
    lines = text.splitlines()
    for name, value in changes.items():
        lines = [
            f"{line.rpartition(' ')[0]} {value}" if line.partition("{")[0].endswith(name) else line
            for line in lines
        ]
    return read_families("\n".join(lines).encode() + b"\n", ENGINE_METRICS)


def picker_metrics(text: str = PICKER_TEXT) -> Families:
    return read_families(text.encode(), PICKER_METRICS)


def pod(name: str, component: str = "engine", **status: Any) -> dict[str, Any]:  # noqa: ANN401 - of a pod
    """A pod that is ready, unless its status says otherwise."""
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {
        "metadata": {
            "name": name,
            "namespace": "llm",
            "labels": {"app.kubernetes.io/component": component, "app.kubernetes.io/instance": "qwen3-32b"},
            "creationTimestamp": _MADE,
        },
        "spec": {"nodeName": f"node-{name.rpartition('-')[2]}"},
        "status": {**ready, **status},
    }


def crashing(name: str) -> dict[str, Any]:
    """A pod whose engine ended."""
    ended = {"exitCode": 1, "reason": "Error", "message": "CUDA out of memory"}
    return pod(
        name,
        conditions=[{"type": "Ready", "status": "False"}],
        containerStatuses=[
            {
                "name": "engine",
                "ready": False,
                "restartCount": 3,
                "state": {},
                "lastState": {"terminated": ended},
            }
        ],
    )


def conditions(**changes: tuple[str, str, str]) -> list[dict[str, str]]:
    """All six, True but for some: status, reason and message by type."""
    told = {each.type: (str(each.status), each.reason, each.message) for each in _WELL.values()} | changes
    return [
        {"type": type_, "status": status, "reason": reason, "message": message}
        for type_, (status, reason, message) in told.items()
    ]


def resource(status: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - of a resource
    """A resource with a disk tier that is ready."""
    tiers = {
        tier.label: {"bytes": planned.capacity_bytes, "tokens": planned.tokens, "source": "Observed"}
        for tier, planned in _PLAN.tiers.by_tier.items()
    }
    own = {
        "observedGeneration": 3,
        "replicas": 2,
        "readyReplicas": 2,
        "tiers": tiers,
        "router": {
            "entries": {f"{tier.label}Prefix": entries for tier, entries in _PLAN.router.entries.items()},
            "tokensPerEntry": _PLAN.router.tokens_per_entry,
        },
        "conditions": conditions(),
    }
    return {
        "metadata": {"name": "qwen3-32b", "namespace": "llm", "generation": 3},
        "spec": {
            "model": {"name": "Qwen/Qwen3-32B"},
            "backend": "KVTier",
            "replicas": 2,
            "engine": {"port": 8000},
            "router": {"flavor": "llm-d"},
            **spec,
        },
        "status": {**own, **(status or {})},
    }


def well(changes: Mapping[str, float] = NONE) -> Seen:
    """A resource with two engines and a picker that serve; `changes` are both engines' metrics."""
    metrics = {name: engine_metrics(changes=changes) for name in ("qwen3-32b-engine-a", "qwen3-32b-engine-b")}
    return Seen(
        resource(),
        (*(pod(name) for name in metrics), pod("qwen3-32b-picker-c", "picker")),
        {**metrics, "qwen3-32b-picker-c": picker_metrics()},
    )


def view_of(seen: Seen) -> ResourceView:
    return resource_view(seen, NOW)
