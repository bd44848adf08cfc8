"""The engine's own container."""

import shlex
from typing import Any, Final

from kvtier_operator.planning.arguments.extra_args import serves_tls
from kvtier_operator.planning.objects.engine.pod.resources import engine_resources
from kvtier_operator.planning.objects.engine.pod.security import engine_container_security
from kvtier_operator.planning.objects.engine.pod.volumes import HOME, engine_volume_mounts
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.units import ceil_div
from kvtier_operator.planning.weights.pod_weights import HF_HOME

_PROBE_PERIOD_S: Final = 10
_SERVE: Final = ("vllm", "serve")


def engine_container(plan: Plan) -> dict[str, Any]:
    """vLLM, ready when /health answers, with the time to start that the budget gives."""
    scheme = {"scheme": "HTTPS"} if serves_tls(plan.resource.spec.engine) else {}
    health = {"httpGet": {"path": "/health", "port": "http", **scheme}, "timeoutSeconds": 5}
    return {
        "name": "engine",
        "image": plan.engine.image,
        "command": _command(plan),
        "args": list(plan.engine.args),
        "env": _env(plan),
        "ports": [{"name": "http", "containerPort": plan.engine.port, "protocol": "TCP"}],
        "startupProbe": health
        | {
            "periodSeconds": _PROBE_PERIOD_S,
            "failureThreshold": ceil_div(plan.budget.startup_s, _PROBE_PERIOD_S),
        },
        "readinessProbe": health | {"periodSeconds": 5, "failureThreshold": 2},
        "livenessProbe": health | {"periodSeconds": _PROBE_PERIOD_S, "failureThreshold": 6},
        "lifecycle": {"preStop": {"sleep": {"seconds": plan.ending.pre_stop_s}}},
        "resources": engine_resources(plan),
        "securityContext": engine_container_security(plan.resource.spec),
        "volumeMounts": engine_volume_mounts(plan),
    }


def _command(plan: Plan) -> list[str]:
    """`vllm serve`, after emptying the folders whose content the backend cannot use again."""
    folders = plan.engine.scratch_dirs
    if not folders:
        return list(_SERVE)
    quoted = " ".join(shlex.quote(folder) for folder in folders)
    return ["/bin/sh", "-c", f'rm -rf -- {quoted} && exec {" ".join(_SERVE)} "$@"', "engine"]


def _env(plan: Plan) -> list[dict[str, Any]]:
    """Plain variables by name, then those that refer to something else."""
    plain = {
        "HOME": HOME,
        # the user has no entry in the image's passwd; torch and vLLM ask for its name
        "USER": "kvtier",
        **({"HF_HOME": HF_HOME} if plan.weights and plan.weights.mount_path == HF_HOME else {}),
        **plan.engine.env,
    }
    pod_name = {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    return [
        *({"name": name, "value": plain[name]} for name in sorted(plain)),
        pod_name,
        *(dict(variable) for variable in plan.engine.env_from_resource),
    ]
