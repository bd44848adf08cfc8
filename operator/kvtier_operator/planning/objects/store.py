"""A store of a resource's own: Valkeys without persistence, for this resource's engines alone."""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_common.redis_protocol import PORT
from kvtier_operator.planning.base.names import CONFIG_HASH, SHARD_LABEL, Component, Names, content_hash
from kvtier_operator.planning.objects.common import (
    NO_PRIVILEGES,
    WITH_VOLUMES,
    config_map,
    deployment,
    ingress_policy,
    placement,
    pod_disruption_budget,
    ports,
    service,
    spread_over_nodes,
)
from kvtier_operator.planning.objects.gateway.providers import provider_of
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.store.server_files import (
    CERTIFICATE_FILES,
    CONFIG_FOLDER,
    CREDENTIALS_FOLDER,
    PING_FILE,
    RUN_FOLDER,
    START_FILE,
    TLS_FOLDER,
    server_files,
)
from kvtier_operator.planning.store.store_plan import StorePlan
from kvtier_operator.planning.units import quantity

PASSWORD_KEY: Final = "password"  # noqa: S105 - a key's name
_PORT_NAME: Final = "tcp-valkey"
"""Meshes take a port for TCP by the beginning of its name."""
_PROBE_S: Final = 10
_ANSWER_S: Final = 5
_FAILURES: Final = 3
_GRACE_S: Final = 5
"""Nothing is written at the end, and engines do without it at once."""


def store_objects(plan: Plan) -> tuple[dict[str, Any], ...]:
    """All but its Secret, whose password no plan knows; none where no store is managed.

    Each server has a Deployment and a Service of its own, for engines have to know which is which.
    """
    store = plan.store
    if store is None:
        return ()
    names = Names.of(plan)
    port = {"name": _PORT_NAME, "protocol": "TCP", "port": PORT, "targetPort": _PORT_NAME}
    engines = {"podSelector": {"matchLabels": names.selector(Component.ENGINE)}}
    mesh = provider_of(plan.resource.spec.router).mesh_ports
    budget = pod_disruption_budget(names, names.store, Component.STORE, store.shards)
    open_ports = [ports(port) for port in (PORT, *mesh)]
    return (
        ingress_policy(names, names.store, Component.STORE, [{"ports": open_ports, "from": [engines]}]),
        *([budget] if budget else []),
        config_map(names, names.store, Component.STORE, _files(store)),
        *(
            document
            for number in range(store.shards)
            for document in (
                service(
                    names, names.store_shard(number), Component.STORE, port, labels={SHARD_LABEL: str(number)}
                ),
                _deployment(plan, store, number),
            )
        ),
    )


def store_deployment(plan: Plan) -> dict[str, Any] | None:
    """Of its first server, which all others are like; None where no store is managed."""
    store = plan.store
    return None if store is None else _deployment(plan, store, 0)


def store_secret(plan: Plan) -> dict[str, Any] | None:
    """The Secret that kvtier makes, without its password; None where somebody else's is named.

    It is made once and never changed, so it is none of a plan's objects, which come out the same each time.
    """
    if plan.store is None or not plan.store.makes_secret:
        return None
    names = Names.of(plan)
    metadata = names.metadata(plan.store.secret, Component.STORE)
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}


def password_command(secret: Mapping[str, Any]) -> str:
    """What makes the Secret by hand, with its password in no argument."""
    metadata = secret["metadata"]
    return (
        "openssl rand -hex 32 | tr -d '\\n' | kubectl create secret generic "
        f"{metadata['name']} --namespace {metadata['namespace']} --from-file={PASSWORD_KEY}=/dev/stdin"
    )


def _files(store: StorePlan) -> dict[str, str]:
    return server_files(store.size, encrypted=bool(store.tls_secret))


def _deployment(plan: Plan, store: StorePlan, number: int) -> dict[str, Any]:
    """One server; an old one goes before the new one comes, for a node may have room for one alone."""
    names, shard = Names.of(plan), {SHARD_LABEL: str(number)}
    certificate = {
        "secretName": store.tls_secret,
        "items": [{"key": name, "path": name} for name in CERTIFICATE_FILES],
    }
    pod = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": _GRACE_S,
        "securityContext": WITH_VOLUMES,
        **placement(plan, plan.resource.spec.router),
        "topologySpreadConstraints": spread_over_nodes(names, Component.STORE),
        "containers": [_container(store)],
        "volumes": [
            {"name": "config", "configMap": {"name": names.store}},
            {"name": "credentials", "secret": {"secretName": store.secret}},
            *([{"name": "tls", "secret": certificate}] if store.tls_secret else []),
            {"name": "run", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        ],
    }
    files_hash = content_hash(*_files(store).values())
    metadata = {
        "labels": {**names.labels(Component.STORE), **shard},
        "annotations": {CONFIG_HASH: files_hash},
    }
    return deployment(
        names,
        names.store_shard(number),
        Component.STORE,
        {"metadata": metadata, "spec": pod},
        selector={"matchLabels": {**names.selector(Component.STORE), **shard}},
        strategy={"type": "Recreate"},
        replicas=1,
    )


def _container(store: StorePlan) -> dict[str, Any]:
    memory = quantity(store.size.memory_bytes)
    ping = {
        "exec": {"command": ["sh", f"{CONFIG_FOLDER}/{PING_FILE}"]},
        "periodSeconds": _PROBE_S,
        "timeoutSeconds": _ANSWER_S,
        "failureThreshold": _FAILURES,
    }
    return {
        "name": "valkey",
        "image": store.image,
        "command": ["sh", f"{CONFIG_FOLDER}/{START_FILE}"],
        "env": [],
        "ports": [{"name": _PORT_NAME, "containerPort": PORT, "protocol": "TCP"}],
        "readinessProbe": ping,
        # a password that was turned: the server starts anew with it
        "livenessProbe": ping,
        "resources": {
            "requests": {"cpu": str(store.size.cores), "memory": memory},
            # no limit of cores: one would stop all engines' transfers for the rest of its period
            "limits": {"memory": memory},
        },
        "securityContext": {**NO_PRIVILEGES, "readOnlyRootFilesystem": True},
        "volumeMounts": [
            {"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True},
            {"name": "credentials", "mountPath": CREDENTIALS_FOLDER, "readOnly": True},
            *([{"name": "tls", "mountPath": TLS_FOLDER, "readOnly": True}] if store.tls_secret else []),
            {"name": "run", "mountPath": RUN_FOLDER},
        ],
    }
