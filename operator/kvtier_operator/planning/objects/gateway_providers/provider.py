"""What is particular to one gateway implementation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kvtier_operator.planning.plan import Plan


def no_objects(plan: Plan) -> tuple[dict[str, Any], ...]:
    """For a provider that finds all it needs in the InferencePool and the HTTPRoute."""
    del plan
    return ()


@dataclass(frozen=True, slots=True)
class Provider:
    """One gateway implementation.

    Attributes:
        objects: Makes what it needs beside InferencePool and HTTPRoute.
        route_timeouts: Whether it takes `timeouts` in an HTTPRoute.
        managed_prometheus: Whether the platform's own Prometheus reads PodMonitoring in place of
            ServiceMonitor.
    """

    objects: Callable[[Plan], tuple[dict[str, Any], ...]] = no_objects
    route_timeouts: bool = True
    managed_prometheus: bool = False
