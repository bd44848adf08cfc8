"""A process beside the engine that must run before it and outlive it."""

from typing import Any, Final

from kvtier_operator.planning.base.container_parts import Sidecar
from kvtier_operator.planning.objects.engine.pod.resources import sidecar_resources
from kvtier_operator.planning.objects.engine.pod.security import engine_container_security
from kvtier_operator.planning.objects.engine.pod.volumes import disk_volume_mounts
from kvtier_operator.planning.plan import Plan

_PERIOD_S: Final = 5


def engine_sidecars(plan: Plan) -> list[dict[str, Any]]:
    """Restartable init containers (Kubernetes 1.29 and later): started first, stopped last."""
    return [_container(plan, sidecar) for sidecar in plan.engine.sidecars]


def _container(plan: Plan, sidecar: Sidecar) -> dict[str, Any]:
    return {
        "name": sidecar.name,
        "image": sidecar.image or plan.engine.image,
        "restartPolicy": "Always",
        "command": list(sidecar.command),
        "env": [
            *({"name": name, "value": sidecar.env[name]} for name in sorted(sidecar.env)),
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
        "ports": [
            {"name": name, "containerPort": port, "protocol": "TCP"} for name, port in sidecar.ports.items()
        ],
        "startupProbe": {
            "exec": {"command": _health_command(sidecar)},
            "periodSeconds": _PERIOD_S,
            "timeoutSeconds": _PERIOD_S,
            "failureThreshold": max(plan.budget.startup_s // _PERIOD_S, 1),
        },
        "resources": sidecar_resources(plan, sidecar),
        "securityContext": engine_container_security(plan.resource.spec),
        "volumeMounts": disk_volume_mounts(plan),
    }


def _health_command(sidecar: Sidecar) -> list[str]:
    """Asked from inside: the server's HTTP API has no authentication and listens on loopback only."""
    return ["python3", "-c", f"import urllib.request as r; r.urlopen('{sidecar.health}', timeout=4)"]
