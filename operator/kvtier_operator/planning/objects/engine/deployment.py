"""The engines: their Deployment, Service and NetworkPolicy."""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_operator.planning.base.merge import merged
from kvtier_operator.planning.base.names import CONFIG_HASH, Component, Names
from kvtier_operator.planning.objects.common import (
    deployment,
    ingress_policy,
    placement,
    ports,
    rolling_update,
    service,
    spread_over_nodes,
    to_json,
)
from kvtier_operator.planning.objects.engine.containers import (
    engine_container,
    engine_doctor,
    engine_fetcher,
    engine_payload,
    engine_pod_security,
    engine_sidecars,
)
from kvtier_operator.planning.objects.engine.volumes import engine_volumes, files_hash
from kvtier_operator.planning.plan import Plan
from kvtier_scorer.config.contract import EVENTS_PORT, REPLAY_PORT

_LAST_PORT: Final = 65535


def engine_deployment(plan: Plan) -> dict[str, Any]:
    """One pod a replica, replaced one at a time: in the room that the old one leaves, or beside it."""
    names, spec = Names.of(plan), plan.resource.spec
    surplus = spec.engine.rollout.surplus_pods
    return deployment(
        names,
        names.engine,
        Component.ENGINE,
        merged(planned_engine_template(plan), spec.engine.pod_template or {}),
        strategy=rolling_update(surge=surplus, unavailable=1 - surplus),
        # the next one may have to wait for one that drains
        progressDeadlineSeconds=plan.ending.grace_s + plan.budget.fetch_s + plan.budget.startup_s + 600,
        # an apply would overwrite an autoscaler's number
        **({} if spec.autoscaling else {"replicas": spec.replicas}),
    )


def planned_engine_template(plan: Plan) -> dict[str, Any]:
    """Template of its pods, without what the resource's own template adds."""
    names = Names.of(plan)
    metadata: dict[str, Any] = {"labels": names.labels(Component.ENGINE)}
    if plan.engine.files or plan.engine.prefixes:
        metadata["annotations"] = {CONFIG_HASH: files_hash(plan)}
    pod = engine_pod(plan, engine_container(plan)) | {
        "serviceAccountName": names.engine,
        "terminationGracePeriodSeconds": plan.ending.grace_s,
        "topologySpreadConstraints": spread_over_nodes(names, Component.ENGINE),
    }
    return {"metadata": metadata, "spec": pod}


def engine_pod(plan: Plan, container: Mapping[str, Any]) -> dict[str, Any]:
    """A pod's spec: where it may run, who it runs as, its volumes, and what comes before its container."""
    engine = plan.resource.spec.engine
    claims = [to_json(claim) for claim in engine.resource_claims]
    return {
        "automountServiceAccountToken": False,
        # vLLM reads VLLM_* variables; a Service called vllm would inject some
        "enableServiceLinks": False,
        "securityContext": engine_pod_security(plan.resource.spec),
        **placement(plan, engine),
        **({"resourceClaims": claims} if claims else {}),
        "initContainers": [
            *engine_payload(plan),
            engine_doctor(plan),
            *engine_fetcher(plan),
            *engine_sidecars(plan),
        ],
        "containers": [dict(container)],
        "volumes": engine_volumes(plan),
    }


def engine_service(plan: Plan) -> dict[str, Any]:
    """Any ready engine, without regard to what it holds."""
    names = Names.of(plan)
    port = {"name": "http", "protocol": "TCP", "port": plan.engine.port, "targetPort": "http"}
    if plan.resource.spec.engine.extra_args.serves_tls:
        port["appProtocol"] = "https"
    return service(names, names.engine, Component.ENGINE, port)


def engine_network_policy(plan: Plan) -> dict[str, Any] | None:
    """All ports but those of events are for all, as without it; None where no events are published.

    A policy knows no "all but these", so the rest is told in ranges. The serving port stands by itself too:
    a network that does not know `endPort` takes of a range its first port alone.
    """
    spec = plan.resource.spec
    if not spec.router.kv_events or spec.router.network_policy.enabled is False:
        return None
    names, ranks = Names.of(plan), spec.engine.data_parallel_size
    event_ports = [(EVENTS_PORT, EVENTS_PORT + ranks - 1), (REPLAY_PORT, REPLAY_PORT + ranks - 1)]
    picker = {"podSelector": {"matchLabels": names.selector(Component.PICKER)}}
    return ingress_policy(
        names,
        names.engine,
        Component.ENGINE,
        (
            {"ports": [ports(*bounds) for bounds in event_ports], "from": [picker]},
            {"ports": [ports(plan.engine.port), *_all_but(event_ports)]},
        ),
    )


def _all_but(ranges: list[tuple[int, int]]) -> list[dict[str, Any]]:
    begins = [1, *(last + 1 for _, last in ranges)]
    ends = [*(first - 1 for first, _ in ranges), _LAST_PORT]
    rest = [ports(first, last) for first, last in zip(begins, ends, strict=True) if first <= last]
    return [*rest, ports(1, _LAST_PORT, "UDP"), ports(1, _LAST_PORT, "SCTP")]
