"""Containers of the engine's pod: the engine, what comes before it, and what stands beside it."""

import shlex
from collections.abc import Mapping
from typing import Any, Final

from kvtier_connector.payload import COPY_COMMAND, ENVIRONMENT, INIT_NAME, PLUGINS, SEARCH_PATH, with_plugin
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.engine import EngineSpec
from kvtier_operator.api.spec.pod import ContainerClaim
from kvtier_operator.api.spec.tiers.cpu import Policy
from kvtier_operator.planning.backends.parts import disk_volumes
from kvtier_operator.planning.base.container_parts import Sidecar
from kvtier_operator.planning.objects.common import NO_PRIVILEGES, env_from_field, to_json
from kvtier_operator.planning.objects.engine.volumes import (
    HOME,
    disk_volume_mounts,
    engine_volume_mounts,
    payload_mount,
    secret_volume_mounts,
    shared_memory_mount,
)
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod.demands import DEMANDS_VARIABLE, NODE_VARIABLE
from kvtier_operator.planning.units import ceil_div, quantity
from kvtier_operator.planning.weights.pod_weights import HF_HOME, MODEL_DIR, SourceKind, model_source

_USER: Final = 1000
_POD_NAME: Final = env_from_field("POD_NAME", "metadata.name")
_HUGEPAGES: Final = "hugepages-"
_PROBE_PERIOD_S: Final = 10
_SERVE: Final = ("vllm", "serve")
ENGINE_NAME: Final = "engine"
DOCTOR_NAME: Final = "doctor"
_BOUNDS: Final = ("cpu", "memory")
"""What becomes a limit of the control group; a GPU or the container's own disk is not looked at."""
_FETCHER_NAME: Final = "fetcher"
_SOURCE: Final = "MODEL_SOURCE"
_FOLDER: Final = "MODEL_DIR"
_FETCHER_HOME: Final = "/tmp"  # noqa: S108 - of the container's own
_SIDECAR_PROBE_PERIOD_S: Final = 5


def runs_as_root(spec: Spec) -> bool:
    """Whether the engine must be root.

    IPC_LOCK lifts RLIMIT_MEMLOCK only when it is effective, and the runtime makes an added capability
    effective for root alone (capabilities(7), execve: ambient ones are not set). A hostPath folder belongs
    to root: fsGroup does not apply to it.
    """
    disk, model = spec.tiers.disk, spec.model.volume
    volumes = (*(disk_volumes(disk) if disk else ()), *((model,) if model else ()))
    return wants_ipc_lock(spec) or any(volume.host_path for volume in volumes)


def wants_ipc_lock(spec: Spec) -> bool:
    """Whether the tier must be locked in memory: `Prefer` takes what can be had without rights (ADR 0020).

    On CUDA the driver page-locks through a call of its own, which RLIMIT_MEMLOCK does not bound; on a CPU
    mlock(2) is bounded by it.
    """
    return spec.tiers.cpu.memlock.policy is Policy.REQUIRE


def engine_pod_security(spec: Spec) -> dict[str, Any]:
    """The pod's security context."""
    profile = {"seccompProfile": {"type": "RuntimeDefault"}}
    if runs_as_root(spec):
        return {"runAsUser": 0, "runAsGroup": 0, **profile}
    return {
        "runAsNonRoot": True,
        "runAsUser": _USER,
        "runAsGroup": _USER,
        "fsGroup": _USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        **profile,
    }


def _container_security(spec: Spec) -> dict[str, Any]:
    """The containers' security context: nothing but, where it is required, locking memory."""
    if not wants_ipc_lock(spec):
        return dict(NO_PRIVILEGES)
    return NO_PRIVILEGES | {"capabilities": {"drop": ["ALL"], "add": ["IPC_LOCK"]}}


def _engine_resources(plan: Plan) -> dict[str, Any]:
    """The budget, without the huge pages that a sidecar maps, and the devices that the pod claims."""
    pages_elsewhere = bool(plan.engine.sidecars)
    claims = _claims(plan.resource.spec.engine)
    return {
        "requests": _without_hugepages(plan.budget.requests, drop=pages_elsewhere),
        "limits": _without_hugepages(plan.budget.limits, drop=pages_elsewhere),
        **({"claims": claims} if claims else {}),
    }


def _claims(engine: EngineSpec) -> list[dict[str, str]]:
    """All that the pod has, unless the resource says which."""
    claims = engine.resources.claims or [ContainerClaim(name=claim.name) for claim in engine.resource_claims]
    return [to_json(claim) for claim in claims]


def _sidecar_resources(plan: Plan, sidecar: Sidecar) -> dict[str, Any]:
    """A sidecar's memory, and the huge pages of the tier that it holds. Requests equal limits."""
    pages = {name: size for name, size in plan.budget.limits.items() if name.startswith(_HUGEPAGES)}
    both = {"memory": quantity(sidecar.memory_bytes), **pages}
    return {"requests": both, "limits": dict(both)}


def _without_hugepages(resources: Mapping[str, str], *, drop: bool) -> dict[str, str]:
    return {name: resources[name] for name in sorted(resources) if not (drop and name.startswith(_HUGEPAGES))}


def engine_container(plan: Plan) -> dict[str, Any]:
    """vLLM, ready when /health answers, with the time to start that the budget gives."""
    scheme = {"scheme": "HTTPS"} if plan.resource.spec.engine.extra_args.serves_tls else {}
    health = {"httpGet": {"path": "/health", "port": "http", **scheme}, "timeoutSeconds": 5}
    return {
        "name": ENGINE_NAME,
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
        "resources": _engine_resources(plan),
        "securityContext": _container_security(plan.resource.spec),
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
    own = plan.engine.env
    plain = {
        "HOME": HOME,
        # the user has no entry in the image's passwd; torch and vLLM ask for its name
        "USER": "kvtier",
        **({"HF_HOME": HF_HOME} if plan.weights and plan.weights.mount_path == HF_HOME else {}),
        **(ENVIRONMENT if plan.engine.payload else {}),
        **own,
    }
    if plan.engine.payload:
        plain[SEARCH_PATH] = ":".join(filter(None, (ENVIRONMENT[SEARCH_PATH], own.get(SEARCH_PATH))))
        plain |= {PLUGINS: with_plugin(own[PLUGINS])} if PLUGINS in own else {}
    # of two of one name an API server takes neither
    named = {variable["name"] for variable in plan.engine.env_from_resource}
    return [
        *({"name": name, "value": plain[name]} for name in sorted({*plain} - named)),
        _POD_NAME,
        *(dict(variable) for variable in plan.engine.env_from_resource),
    ]


def engine_payload(plan: Plan) -> list[dict[str, Any]]:
    """One, or none: it copies the connector, which is no part of the engine's image, before each start.

    It comes before any sidecar for the same reason as the doctor (`engine_doctor`).
    """
    if plan.engine.payload is None:
        return []
    container = {
        "name": INIT_NAME,
        "image": plan.engine.payload,
        "command": list(COPY_COMMAND),
        "resources": _init_resources(plan, pages=False),
        "securityContext": dict(NO_PRIVILEGES),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [payload_mount()],
    }
    return [container]


def engine_doctor(plan: Plan) -> dict[str, Any]:
    """`kvtier doctor --in-pod`, within the engine's limits, security context and volumes.

    It comes before any sidecar. A sidecar that lacks memory or huge pages would keep those after it waiting,
    and the doctor is there to say what it lacks. It is also gone by then: beside a sidecar, the huge pages
    that both request would count twice (Kubernetes, Resource sharing within containers).
    """
    return {
        "name": DOCTOR_NAME,
        "image": plan.doctor.image,
        "command": ["kvtier", "doctor", "--in-pod"],
        "env": [
            {"name": DEMANDS_VARIABLE, "value": plan.doctor.demands.to_json()},
            env_from_field(NODE_VARIABLE, "spec.nodeName"),
            _POD_NAME,
        ],
        "resources": _init_resources(plan),
        "securityContext": _container_security(plan.resource.spec),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            shared_memory_mount(),
            *(secret_volume_mounts(plan) if plan.doctor.demands.remote else ()),
            *disk_volume_mounts(plan),
        ],
    }


def _init_resources(plan: Plan, *, pages: bool = True) -> dict[str, Any]:
    """What of the engine's resources bounds a container that runs before it, with huge pages or without."""
    starts = (*_BOUNDS, _HUGEPAGES) if pages else _BOUNDS
    both = {"requests": plan.budget.requests, "limits": plan.budget.limits}
    return {
        kind: {name: amounts[name] for name in sorted(amounts) if name.startswith(starts)}
        for kind, amounts in both.items()
    }


def engine_fetcher(plan: Plan) -> list[dict[str, Any]]:
    """One, or none: it runs before each start, and finds what an earlier one left on a volume that lasts.

    It has the engine's CPU and memory, which cost nothing: the engine starts when it has ended.
    """
    model = plan.resource.spec.model
    source, fetcher = model_source(model), model.fetcher
    if plan.weights is None or fetcher is None or source is None or source.kind is not SourceKind.FETCHED:
        return []
    source_variables = {_SOURCE: source.place, _FOLDER: source.folder}
    arguments = fetcher.args or ([] if fetcher.command else [f"$({name})" for name in source_variables])
    # the user has no home in the image
    own = {"HOME": _FETCHER_HOME, **source_variables}
    replaced = {variable.name for variable in fetcher.env}
    container = {
        "name": _FETCHER_NAME,
        "image": fetcher.image,
        "command": list(fetcher.command),
        "args": list(arguments),
        "env": [
            *({"name": name, "value": own[name]} for name in own if name not in replaced),
            *(to_json(variable) for variable in fetcher.env),
        ],
        "resources": _init_resources(plan, pages=False),
        "securityContext": dict(NO_PRIVILEGES),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": plan.weights.name, "mountPath": MODEL_DIR}],
    }
    return [{name: value for name, value in container.items() if value != []}]


def engine_sidecars(plan: Plan) -> list[dict[str, Any]]:
    """Restartable init containers (Kubernetes 1.29 and later): started first, stopped last."""
    return [_sidecar(plan, sidecar) for sidecar in plan.engine.sidecars]


def _sidecar(plan: Plan, sidecar: Sidecar) -> dict[str, Any]:
    return {
        "name": sidecar.name,
        "image": sidecar.image or plan.engine.image,
        "restartPolicy": "Always",
        "command": list(sidecar.command),
        "env": [
            *({"name": name, "value": sidecar.env[name]} for name in sorted(sidecar.env)),
            _POD_NAME,
            *(dict(variable) for variable in sidecar.env_from),
        ],
        "ports": [
            {"name": name, "containerPort": port, "protocol": "TCP"} for name, port in sidecar.ports.items()
        ],
        "startupProbe": {
            "exec": {"command": _health_command(sidecar)},
            "periodSeconds": _SIDECAR_PROBE_PERIOD_S,
            "timeoutSeconds": _SIDECAR_PROBE_PERIOD_S,
            "failureThreshold": max(plan.budget.startup_s // _SIDECAR_PROBE_PERIOD_S, 1),
        },
        "resources": _sidecar_resources(plan, sidecar),
        "securityContext": _container_security(plan.resource.spec),
        "volumeMounts": disk_volume_mounts(plan),
    }


def _health_command(sidecar: Sidecar) -> list[str]:
    """Asked from inside: the server's HTTP API has no authentication and listens on loopback only."""
    return ["python3", "-c", f"import urllib.request as r; r.urlopen('{sidecar.health}', timeout=4)"]
