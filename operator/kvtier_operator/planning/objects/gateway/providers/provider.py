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
        rewrites_paths: Whether it replaces a path's prefix by another one than `/`.
        managed_prometheus: Whether the platform's own Prometheus reads PodMonitoring in place of
            ServiceMonitor.
        own_proxies: Whether its proxies are pods that kvtier makes.
        proxies_beside_gateway: Whether its proxies are pods in the Gateway's namespace.
        calls_from: What addresses its proxies have, where they are no pods.
        ip_blocks: Where it calls and checks a picker from, beside its proxies' own addresses.
        mesh_ports: Ports at which its mesh, where there is one, hands a pod what was sent to another.
    """

    objects: Callable[[Plan], tuple[dict[str, Any], ...]] = no_objects
    route_timeouts: bool = True
    rewrites_paths: bool = True
    managed_prometheus: bool = False
    own_proxies: bool = False
    proxies_beside_gateway: bool = False
    calls_from: str = ""
    ip_blocks: tuple[str, ...] = ()
    mesh_ports: tuple[int, ...] = ()
