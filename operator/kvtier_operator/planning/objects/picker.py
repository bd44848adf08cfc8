"""The endpoint picker's objects, and who may ask it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.api.spec.router import RouterSpec
from kvtier_operator.planning.base.merge import merged
from kvtier_operator.planning.base.names import CONFIG_HASH, Component, Names
from kvtier_operator.planning.base.tracing import otel_variables
from kvtier_operator.planning.flavors import flavor_traits
from kvtier_operator.planning.flavors.traits import EndingInput, FlavorTraits, PickerEnding
from kvtier_operator.planning.objects.common import (
    EXT_PROC_PORT,
    HEALTH_PORT,
    METRICS_PORT,
    NO_PRIVILEGES,
    SCRATCH,
    UNPRIVILEGED,
    config_map,
    deployment,
    env_from_field,
    ingress_policy,
    namespace,
    placement,
    ports,
    rolling_update,
    service,
)
from kvtier_operator.planning.objects.gateway.providers import POOL_GROUP, has_pool, provider_of
from kvtier_operator.planning.plan import Plan

_CONFIG_FOLDER: Final = "/config"
_FILE_NAME: Final = "picker.yaml"
_READ: Final = ("get", "list", "watch")
_OBJECTIVES: Final = ("inferenceobjectives", "inferencemodelrewrites")
_RBAC_GROUP: Final = "rbac.authorization.k8s.io"


def picker_deployment(plan: Plan) -> dict[str, Any]:
    """One picker, which a new one follows without a gap: the old one goes when the new one is ready.

    For some seconds each knows of its own requests only. Of pickers that elect a leader one alone is ever
    ready, and stays it until it goes: all new ones start beside the old ones and the first to find the leader
    gone takes over.
    """
    names, router = Names.of(plan), plan.resource.spec.router
    return deployment(
        names,
        names.picker,
        Component.PICKER,
        merged(planned_picker_template(plan), router.pod_template or {}),
        strategy=rolling_update("100%", "100%") if _several(plan) else rolling_update(1, 0),
        replicas=router.replicas,
    )


def planned_picker_template(plan: Plan) -> dict[str, Any]:
    """Template of its pods, without what the resource's own template adds."""
    names = Names.of(plan)
    pod = {
        "serviceAccountName": names.picker,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": plan.ending.grace_s,
        "securityContext": UNPRIVILEGED,
        **placement(plan, plan.resource.spec.router),
        "containers": [_container(plan)],
        "volumes": [
            {"name": "config", "configMap": {"name": names.picker}},
            *([SCRATCH] if _traits(plan).compiles else []),
        ],
    }
    metadata = {
        "labels": names.labels(Component.PICKER),
        "annotations": {CONFIG_HASH: plan.router.config_hash},
    }
    return {"metadata": metadata, "spec": pod}


def _container(plan: Plan) -> dict[str, Any]:
    pre_stop_s = _ending(plan).pre_stop_s
    ports = {"grpc-ext-proc": EXT_PROC_PORT, "grpc-health": HEALTH_PORT, "http-metrics": METRICS_PORT}
    return {
        "name": "picker",
        "image": plan.router.image,
        "args": _args(plan),
        "env": [
            env_from_field("NAMESPACE", "metadata.namespace"),
            env_from_field("POD_NAME", "metadata.name"),
            *({"name": name, "value": value} for name, value in _tracing_variables(plan).items()),
        ],
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()],
        **_probes(plan),
        # Kubernetes before 1.33 refuses to sleep for no time
        **({"lifecycle": {"preStop": {"sleep": {"seconds": pre_stop_s}}}} if pre_stop_s else {}),
        "resources": {
            "requests": dict(plan.router.resources.requests),
            "limits": dict(plan.router.resources.limits),
        },
        "securityContext": {**NO_PRIVILEGES, "readOnlyRootFilesystem": True},
        "volumeMounts": [
            {"name": "config", "mountPath": _CONFIG_FOLDER, "readOnly": True},
            *([{"name": SCRATCH["name"], "mountPath": "/tmp"}] if _traits(plan).compiles else []),  # noqa: S108 - a mount
        ],
    }


def _tracing_variables(plan: Plan) -> Mapping[str, str]:
    names, tracing = Names.of(plan), plan.resource.spec.observability.tracing
    return {} if tracing is None else otel_variables(tracing, names, names.picker)


def _traits(plan: Plan) -> FlavorTraits:
    return flavor_traits(plan.resource.spec.router.flavor)


def _ending(plan: Plan) -> PickerEnding:
    return _traits(plan).ending(
        EndingInput(plan.ending, plan.router.version, plan.resource.spec.router.replicas)
    )


def _several(plan: Plan) -> bool:
    return plan.resource.spec.router.replicas > 1


def _probes(plan: Plan) -> dict[str, Any]:
    """By the health service's own names for what is asked.

    Source: the charts of llm-d-router v0.10.0 and the inference extension v1.4.0 and v1.5.0. kvtier's own
    picker compiles its kernels at start where the image's do not suit the node.
    """
    split = _traits(plan).knows_probes or _several(plan)
    live, ready = ("liveness", "readiness") if split else ("inference-extension", "inference-extension")
    probes = {
        "livenessProbe": _probe(live) | {"periodSeconds": 10},
        "readinessProbe": _probe(ready) | {"periodSeconds": 2},
    }
    if _traits(plan).compiles:
        return {"startupProbe": _probe(live) | {"periodSeconds": 2, "failureThreshold": 60}} | probes
    probes["livenessProbe"]["initialDelaySeconds"] = 5
    return probes


def _probe(service: str) -> dict[str, Any]:
    return {"grpc": {"port": HEALTH_PORT, "service": service}}


def _args(plan: Plan) -> list[str]:
    """The same for every flavour, and its own. Booleans of upstream's need the form with `=`.

    Pickers serve TLS with a certificate of their own (`--secure-serving`, on by default), as every gateway
    expects of an InferencePool's picker: see `objects/gateway/providers.py`.
    """
    traits = _traits(plan)
    return [
        *_engines(plan),
        *("--config-file", f"{_CONFIG_FOLDER}/{_FILE_NAME}"),
        *("--grpc-port", str(EXT_PROC_PORT)),
        *("--grpc-health-port", str(HEALTH_PORT)),
        *("--metrics-port", str(METRICS_PORT)),
        *_ending(plan).args,
        *(traits.endpoint_args if plan.resource.spec.router.expose_endpoint else ()),
        *traits.args(plan.resource.spec.observability.tracing is not None),
        *((traits.tls_args or ()) if plan.resource.spec.engine.extra_args.serves_tls else ()),
        *(("--ha-enable-leader-election",) if _several(plan) else ()),
    ]


def _engines(plan: Plan) -> list[str]:
    """What the picker chooses among."""
    names = Names.of(plan)
    if has_pool(plan.resource.spec.router):
        return [
            *("--pool-name", names.resource),
            *("--pool-namespace", names.namespace),
            *("--pool-group", POOL_GROUP),
        ]
    labels = names.selector(Component.ENGINE)
    return [
        *("--endpoint-selector", ",".join(f"{name}={labels[name]}" for name in sorted(labels))),
        *("--endpoint-target-ports", str(plan.engine.port)),
        *("--pool-namespace", names.namespace),
    ]


def picker_config_map(plan: Plan) -> dict[str, Any]:
    """The EndpointPickerConfig as the plan has it."""
    names = Names.of(plan)
    return config_map(names, names.picker, Component.PICKER, {_FILE_NAME: plan.router.config})


def picker_service(plan: Plan) -> dict[str, Any]:
    """Envoy's ext_proc protocol and the picker's metrics."""
    names = Names.of(plan)
    return service(
        names,
        names.picker,
        Component.PICKER,
        {"name": "grpc-ext-proc", "protocol": "TCP", "port": EXT_PROC_PORT},
        {"name": "http-metrics", "protocol": "TCP", "port": METRICS_PORT},
    )


def picker_role(plan: Plan) -> dict[str, Any]:
    """Least rights by flavour.

    Source: config/charts of llm-d-router v0.10.0 and of the inference extension v1.4.0 and v1.5.0 (rbac.yaml,
    leader-election-rbac.yaml). The metrics endpoint is served without authentication, so the cluster-wide
    right to review tokens is not needed.
    """
    names = Names.of(plan)
    router = plan.resource.spec.router
    # the endpoints: addresses and readiness of the engines
    rules = [_rule("", ["pods"], _READ)]
    if has_pool(router):
        # the pool it picks for: selector and ports
        rules.append(_rule(POOL_GROUP, ["inferencepools"], _READ))
        # priorities and model rewrites, which upstream's pickers watch whether or not there are any
        rules += [_rule(group, _OBJECTIVES, _READ) for group in flavor_traits(router.flavor).objectives]
    if router.replicas > 1:
        # leader election: the lease that decides which picker answers
        rules.append(
            _rule("coordination.k8s.io", ["leases"], (*_READ, "create", "update", "patch", "delete"))
        )
        # leader election reports its changes as events
        rules.append(_rule("", ["events"], ("create", "patch")))
    return {
        "apiVersion": f"{_RBAC_GROUP}/v1",
        "kind": "Role",
        "metadata": names.metadata(names.picker, Component.PICKER),
        "rules": rules,
    }


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def picker_role_binding(plan: Plan) -> dict[str, Any]:
    """Binds the picker's role to its ServiceAccount."""
    names = Names.of(plan)
    return {
        "apiVersion": f"{_RBAC_GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": names.metadata(names.picker, Component.PICKER),
        "roleRef": {"apiGroup": _RBAC_GROUP, "kind": "Role", "name": names.picker},
        "subjects": [{"kind": "ServiceAccount", "name": names.picker, "namespace": names.namespace}],
    }


def picker_network_policy(plan: Plan) -> dict[str, Any] | None:
    """ext_proc for the gateway's proxies alone; health and metrics say nothing of prompts and are for all.

    None where it is not known who the proxies are: a policy that shuts the gateway out stops all requests.
    """
    router = plan.resource.spec.router
    if not is_guarded(router):
        return None
    names, provider = Names.of(plan), provider_of(router)
    blocks = {*router.network_policy.ip_blocks, *provider.ip_blocks}
    own = {"podSelector": {"matchLabels": names.selector(Component.GATEWAY)}}
    peers = (
        *([own] if provider.own_proxies else []),
        *map(namespace, admitted_namespaces(plan.resource)),
        *({"ipBlock": {"cidr": block}} for block in sorted(blocks)),
    )
    picks = {"ports": [ports(EXT_PROC_PORT), *map(ports, provider.mesh_ports)], "from": [*peers]}
    figures = {"ports": [ports(HEALTH_PORT), ports(METRICS_PORT)]}
    return ingress_policy(names, names.picker, Component.PICKER, (picks, figures))


def is_guarded(router: RouterSpec) -> bool:
    """Whether the picker has a policy."""
    options = router.network_policy
    if options.enabled is not None:
        return options.enabled
    provider = provider_of(router)
    known = provider.own_proxies or provider.proxies_beside_gateway
    return known or bool(options.namespaces or options.ip_blocks)


def admitted_namespaces(resource: KVCacheTier) -> list[str]:
    """Whose pods may all ask it: its own namespace's, the Gateway's and those that are named.

    Behind kvtier's own gateway those that are named alone.
    """
    router = resource.spec.router
    namespaces = router.network_policy.namespaces
    if router.standalone:
        return sorted(namespaces)
    parent = router.gateway.parent_ref if router.gateway else None
    gateway = parent.namespace if parent else None
    return sorted({resource.metadata.namespace, *namespaces, *([gateway] if gateway else [])})
