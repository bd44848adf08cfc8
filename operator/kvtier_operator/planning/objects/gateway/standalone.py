"""The objects of kvtier's own gateway: Envoy before the picker, without Gateway API."""

import json
from typing import Any, Final
from urllib.parse import urlsplit

from kvtier_operator.api.spec.router import Standalone
from kvtier_operator.planning.base.merge import merged
from kvtier_operator.planning.base.names import CONFIG_HASH, Component, Names, content_hash, gateway_name
from kvtier_operator.planning.envoy.bootstrap import READY_PATH, bootstrap, certificate_resource
from kvtier_operator.planning.envoy.gateway import (
    Address,
    BodyMode,
    EngineService,
    Entrance,
    Gateway,
    Keys,
    Picker,
    Traces,
)
from kvtier_operator.planning.flavors import flavor_traits
from kvtier_operator.planning.objects.common import (
    EXT_PROC_PORT,
    HEALTH_PORT,
    NO_PRIVILEGES,
    SCRATCH,
    WITH_VOLUMES,
    config_map,
    deployment,
    placement,
    pod_disruption_budget,
    rolling_update,
    service,
    spread_over_nodes,
)
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.router.engine_routes import passed_paths
from kvtier_operator.planning.router.router_plan import GatewayPlan, KeysPlan, ModelRouterPlan

_SERVING_PORT: Final = 8080
"""In the pod."""
_HTTP_PORT: Final = 80
_HTTPS_PORT: Final = 443

CONFIG_FOLDER: Final = "/etc/kvtier/envoy"
CERTIFICATE_FOLDER: Final = "/etc/kvtier/certificate"
KEYS_FOLDER: Final = "/etc/kvtier/keys"
"""Envoy's own; those of the Secret are read elsewhere."""
_MOUNTED_FOLDER: Final = "/etc/kvtier/secret-keys"
KEYS_FILE: Final = "keys.json"
_BOOTSTRAP_FILE: Final = "envoy.json"
CERTIFICATE_FILE: Final = "certificate.json"
_CHECK_S: Final = 1.0

_WORKERS: Final = 2
"""Threads; by itself Envoy takes as many as the node has processors."""
_SECURITY_CONTEXT: Final = {**NO_PRIVILEGES, "readOnlyRootFilesystem": True}


def standalone_objects(plan: Plan) -> tuple[dict[str, Any], ...]:
    """All of them; none where there is no such gateway."""
    settings, gateway = plan.resource.spec.router.standalone, plan.router.gateway
    if settings is None or gateway is None:
        return ()
    names = Names.of(plan)
    pdb = pod_disruption_budget(names, names.gateway, Component.GATEWAY, settings.replicas)
    return (
        config_map(names, names.gateway, Component.GATEWAY, _files(plan, settings, gateway)),
        _service(plan, settings),
        deployment(
            names,
            names.gateway,
            Component.GATEWAY,
            merged(_template(plan, settings, gateway), settings.pod_template or {}),
            strategy=rolling_update(surge=1, unavailable=0),
            replicas=settings.replicas,
        ),
        *([] if pdb is None else [pdb]),
    )


def planned_gateway_template(plan: Plan) -> dict[str, Any] | None:
    """Template of its pods, without what the resource's own template adds; None without such a gateway."""
    settings, gateway = plan.resource.spec.router.standalone, plan.router.gateway
    return None if settings is None or gateway is None else _template(plan, settings, gateway)


def _files(plan: Plan, settings: Standalone, gateway: GatewayPlan) -> dict[str, str]:
    """Envoy's configuration: text of each file by its name."""
    files = {_BOOTSTRAP_FILE: bootstrap(_envoy(plan, settings, gateway))}
    if settings.tls_secret_name:
        files[CERTIFICATE_FILE] = certificate_resource(CERTIFICATE_FOLDER)
    return {name: json.dumps(content, indent=1) + "\n" for name, content in files.items()}


def _envoy(plan: Plan, settings: Standalone, gateway: GatewayPlan) -> Gateway:
    """Services are named as their own namespace knows them, whatever the cluster's domain."""
    names, router = Names.of(plan), plan.resource.spec.router
    whole = flavor_traits(router.flavor).takes_whole_bodies
    picker = Picker(
        Address(names.picker, EXT_PROC_PORT),
        failure_mode=router.failure_mode,
        body=BodyMode.BUFFERED if whole else BodyMode.STREAMED,
        tls=True,
        # a whole body is still there when the picker cannot be asked
        check_s=None if whole else _CHECK_S,
    )
    engines = EngineService(
        Address(names.engine, plan.engine.port), tls=plan.resource.spec.engine.extra_args.serves_tls
    )
    entrance = Entrance(
        heap_bytes=gateway.heap_bytes,
        paths=passed_paths(router.gateway.extra_paths if router.gateway else ()),
        certificate=f"{CONFIG_FOLDER}/{CERTIFICATE_FILE}" if settings.tls_secret_name else None,
        model_router=Address("127.0.0.1", EXT_PROC_PORT) if gateway.model_router else None,
        others={
            resource: Address(gateway_name(resource), _HTTP_PORT)
            for resource in sorted({model.resource for model in settings.models})
        },
        tells_endpoint=router.expose_endpoint,
        keys=Keys(f"{KEYS_FOLDER}/{KEYS_FILE}", settings.api_keys.requests_per_minute)
        if settings.api_keys
        else None,
        traces=_traces(plan),
    )
    return Gateway(Address("0.0.0.0", _SERVING_PORT), engines, picker, gateway.held_bytes, entrance)  # noqa: S104 - a pod's


def _traces(plan: Plan) -> Traces | None:
    wanted = plan.resource.spec.observability.tracing
    if wanted is None:
        return None
    place = urlsplit(wanted.endpoint)
    collector = Address(place.hostname or "", place.port or 0)
    return Traces(collector, Names.of(plan).gateway, wanted.sampling_ratio)


def _service(plan: Plan, settings: Standalone) -> dict[str, Any]:
    """HTTP, or HTTPS where there is a certificate."""
    names = Names.of(plan)
    name, number = ("https", _HTTPS_PORT) if settings.tls_secret_name else ("http", _HTTP_PORT)
    port = {"name": name, "protocol": "TCP", "port": number, "targetPort": "http", "appProtocol": name}
    return service(names, names.gateway, Component.GATEWAY, port)


def _template(plan: Plan, settings: Standalone, gateway: GatewayPlan) -> dict[str, Any]:
    """Of Envoys that are all alike, replaced when their files change."""
    names = Names.of(plan)
    pod = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": plan.ending.grace_s,
        "securityContext": WITH_VOLUMES,
        **placement(plan, plan.resource.spec.router),
        "topologySpreadConstraints": spread_over_nodes(names, Component.GATEWAY),
        **_beside(plan, gateway),
        "containers": [_container(plan, settings, gateway)],
        "volumes": [
            {"name": "config", "configMap": {"name": names.gateway}},
            *_certificate(settings),
            *_keys_volumes(settings),
            *([SCRATCH] if gateway.model_router else []),
        ],
    }
    metadata = {
        "labels": names.labels(Component.GATEWAY),
        "annotations": {CONFIG_HASH: content_hash(*_files(plan, settings, gateway).values())},
    }
    return {"metadata": metadata, "spec": pod}


def _beside(plan: Plan, gateway: GatewayPlan) -> dict[str, Any]:
    """Sidecars: there before Envoy, and until that has ended."""
    containers = [
        *([_keys_reader(gateway.keys)] if gateway.keys else []),
        *([_model_router(plan, gateway.model_router)] if gateway.model_router else []),
    ]
    return {"initContainers": containers} if containers else {}


def _keys_reader(keys: KeysPlan) -> dict[str, Any]:
    """Without a key it ends, and Envoy, which would let nobody in, does not start."""
    file = f"{KEYS_FOLDER}/{KEYS_FILE}"
    return {
        "name": "api-keys",
        "image": keys.image,
        "restartPolicy": "Always",
        # past the image's own start, which copies the picker's kernels
        "command": ["python", "-m", "kvtier_scorer.picker", "api-keys"],
        "args": [
            *("--folder", _MOUNTED_FOLDER),
            *("--file", file),
            *(["--pass-on"] if keys.passes_on else []),
        ],
        "startupProbe": {
            "exec": {"command": ["test", "-s", file]},
            "periodSeconds": 1,
            "failureThreshold": 120,
        },
        "resources": {"requests": dict(keys.compute.requests), "limits": dict(keys.compute.limits)},
        "securityContext": _SECURITY_CONTEXT,
        # it says there what is wrong with the Secret
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "secret-keys", "mountPath": _MOUNTED_FOLDER, "readOnly": True},
            {"name": "keys", "mountPath": KEYS_FOLDER},
        ],
    }


def _keys_volumes(settings: Standalone) -> list[dict[str, Any]]:
    if settings.api_keys is None:
        return []
    # for one that is missing the kubelet would wait in silence
    secret = {"secretName": settings.api_keys.secret_name, "optional": True, "defaultMode": 0o440}
    # twice the largest Secret, as JSON, while a new one takes the place of the old one
    memory = {"medium": "Memory", "sizeLimit": "8Mi"}
    return [{"name": "secret-keys", "secret": secret}, {"name": "keys", "emptyDir": memory}]


def _model_router(plan: Plan, gateway: ModelRouterPlan) -> dict[str, Any]:
    """It listens on the pod's loopback alone."""
    limits = gateway.body_limits
    probe = {"grpc": {"port": HEALTH_PORT, "service": "liveness"}}
    return {
        "name": "model-router",
        "image": gateway.image,
        "restartPolicy": "Always",
        "args": [
            "model-router",
            *(f"--route={resource}={model}" for model, resource in sorted(gateway.routes.items())),
            *("--grpc-port", str(EXT_PROC_PORT)),
            *("--grpc-health-port", str(HEALTH_PORT)),
            *("--max-body-bytes", str(limits.max_bytes)),
            *("--total-body-bytes", str(limits.total_bytes)),
            *("--grace-period", str(plan.ending.drain_s)),
        ],
        "ports": [{"name": "grpc-health", "containerPort": HEALTH_PORT, "protocol": "TCP"}],
        "startupProbe": probe | {"periodSeconds": 1, "failureThreshold": 120},
        "livenessProbe": probe | {"periodSeconds": 10},
        "resources": {
            "requests": dict(gateway.compute.requests),
            "limits": dict(gateway.compute.limits),
        },
        "securityContext": _SECURITY_CONTEXT,
        "volumeMounts": [{"name": SCRATCH["name"], "mountPath": "/tmp"}],  # noqa: S108 - a mount
    }


def _container(plan: Plan, settings: Standalone, gateway: GatewayPlan) -> dict[str, Any]:
    # Told to end, Envoy ends at once: what it has under way has to be over by then.
    seconds = plan.ending.pre_stop_s + plan.ending.drain_s
    certificate = {"name": "certificate", "mountPath": CERTIFICATE_FOLDER, "readOnly": True}
    keys = {"name": "keys", "mountPath": KEYS_FOLDER, "readOnly": True}
    return {
        "name": "gateway",
        "image": gateway.image,
        "command": ["envoy"],
        "args": [
            *("--config-path", f"{CONFIG_FOLDER}/{_BOOTSTRAP_FILE}"),
            *("--concurrency", str(_WORKERS)),
            *("--log-level", "warning"),
            "--disable-hot-restart",
        ],
        "env": _env(settings),
        "ports": [{"name": "http", "containerPort": _SERVING_PORT, "protocol": "TCP"}],
        **_probes(settings),
        "lifecycle": {"preStop": {"sleep": {"seconds": seconds}}},
        "resources": {
            "requests": dict(gateway.compute.requests),
            "limits": dict(gateway.compute.limits),
        },
        "securityContext": _SECURITY_CONTEXT,
        # what it says at its end is the pod's message in the status
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True},
            *([certificate] if settings.tls_secret_name else []),
            *([keys] if settings.api_keys else []),
        ],
    }


def _env(settings: Standalone) -> list[dict[str, Any]]:
    """A pod's status tells of a Secret that is missing, or has no certificate, for a variable alone."""
    if not settings.tls_secret_name:
        return []
    key = {"name": settings.tls_secret_name, "key": "tls.crt"}
    return [{"name": "KVTIER_CERTIFICATE", "valueFrom": {"secretKeyRef": key}}]


def _certificate(settings: Standalone) -> list[dict[str, Any]]:
    if not settings.tls_secret_name:
        return []
    secret = {"secretName": settings.tls_secret_name, "optional": True, "defaultMode": 0o440}
    return [{"name": "certificate", "secret": secret}]


def _probes(settings: Standalone) -> dict[str, Any]:
    """Ready is who answers as clients are answered, with a certificate where there is one.

    An Envoy that has no memory left refuses requests, and lives. It listens once it has looked up the names
    of the Services, or given up: two minutes where no DNS server answers.
    """
    scheme = "HTTPS" if settings.tls_secret_name else "HTTP"
    request = {"httpGet": {"path": READY_PATH, "port": "http", "scheme": scheme}}
    return {
        "startupProbe": request | {"periodSeconds": 2, "failureThreshold": 150},
        "livenessProbe": {"tcpSocket": {"port": "http"}, "periodSeconds": 10},
        "readinessProbe": request | {"periodSeconds": 2},
    }
