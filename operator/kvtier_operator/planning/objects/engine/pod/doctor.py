"""The init container that looks at the pod before vLLM starts."""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_operator.planning.objects.engine.pod.security import engine_container_security
from kvtier_operator.planning.objects.engine.pod.volumes import disk_volume_mounts, shared_memory_mount
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod.demands import DEMANDS_VARIABLE, NODE_VARIABLE

NAME: Final = "doctor"
_BOUNDS: Final = ("cpu", "memory")
_PAGES: Final = "hugepages-"
"""What becomes a limit of the control group; a GPU or the container's own disk is not looked at."""


def engine_doctor(plan: Plan) -> dict[str, Any]:
    """`kvtier doctor --in-pod`, within the engine's limits, security context and volumes.

    It comes before any sidecar. A sidecar that lacks memory or huge pages would keep those after it waiting,
    and the doctor is there to say what it lacks. It is also gone by then: beside a sidecar, the huge pages
    that both request would count twice (Kubernetes, Resource sharing within containers).
    """
    fields = {NODE_VARIABLE: "spec.nodeName", "POD_NAME": "metadata.name"}
    return {
        "name": NAME,
        "image": plan.doctor.image,
        "command": ["kvtier", "doctor", "--in-pod"],
        "env": [
            {"name": DEMANDS_VARIABLE, "value": plan.doctor.demands.to_json()},
            *(
                {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
                for name, path in fields.items()
            ),
        ],
        "resources": {
            "requests": bounds(plan.budget.requests),
            "limits": bounds(plan.budget.limits),
        },
        "securityContext": engine_container_security(plan.resource.spec),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [shared_memory_mount(), *disk_volume_mounts(plan)],
    }


def bounds(resources: Mapping[str, str], *, pages: bool = True) -> dict[str, str]:
    """What of an engine's resources bounds a container that runs before it, with huge pages or without."""
    kept = (*_BOUNDS, _PAGES) if pages else _BOUNDS
    return {name: resources[name] for name in sorted(resources) if name.startswith(kept)}
