"""Many resources of one shape, and the objects that they stand for."""

from typing import Any, Final

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

NAMESPACE: Final = "fleet"


def name_of(number: int) -> str:
    """Name of one of them."""
    return f"tier-{number:05}"


def resource(number: int) -> dict[str, Any]:
    """One of them: a known model, one replica, a picker, a route for a host of its own."""
    return {
        "apiVersion": "kvtier.dev/v1alpha1",
        "kind": "KVCacheTier",
        "metadata": {"name": name_of(number), "namespace": NAMESPACE},
        "spec": {
            "model": {"name": "Qwen/Qwen3-32B"},
            "engine": {"tensorParallelSize": 2},
            "tiers": {"cpu": {"capacity": "100Gi"}},
            "router": {
                "gateway": {"parentRef": {"name": "gateway"}, "hostnames": [f"{name_of(number)}.example.com"]}
            },
        },
    }


def objects(number: int) -> tuple[dict[str, Any], ...]:
    """What kvtier makes of it."""
    return build_objects(make_plan(parse_resource(resource(number), "fleet"), Observed()))
