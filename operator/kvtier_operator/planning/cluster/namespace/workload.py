"""What one Deployment asks its namespace for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.planning.base.names import COMPONENT_LABEL, Component
from kvtier_operator.planning.base.node import whole
from kvtier_operator.planning.cluster.namespace.names import STORAGE
from kvtier_operator.planning.units import ceil_div

DEPLOYMENT: Final = "Deployment"


@dataclass(frozen=True, slots=True)
class Claim:
    """A volume that is made with each pod.

    Attributes:
        volume: The pod's volume.
        storage_class: Its storage class; None for the cluster's default.
        storage_bytes: Its size.
    """

    volume: str
    storage_class: str | None
    storage_bytes: int


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment's pods.

    Attributes:
        name: The Deployment.
        component: Whose it is.
        pods: How many there are.
        surge: How many a rollout makes beside them at most.
        pod: The spec of one.
        claims: Volumes that are made with each.
        named_claims: Claims that must be there, by the volumes that name them.
    """

    name: str
    component: Component
    pods: int
    surge: int
    pod: Mapping[str, Any]
    claims: tuple[Claim, ...]
    named_claims: Mapping[str, str]


def workload(deployment: Mapping[str, Any], pods: int | None = None, *, scaled_to: int = 1) -> Workload:
    """Reads a Deployment that kvtier makes.

    Args:
        deployment: apps/v1, as the planner builds it or as it is live.
        pods: How many of its pods there are, those of a rollout among them; as many as it wants where None.
        scaled_to: As many as it wants where an autoscaler says so, and not the Deployment.
    """
    metadata, spec = deployment["metadata"], deployment["spec"]
    pod = spec["template"]["spec"]
    volumes = pod.get("volumes", ())
    return Workload(
        name=metadata["name"],
        component=Component(metadata["labels"][COMPONENT_LABEL]),
        pods=int(spec.get("replicas", scaled_to)) if pods is None else pods,
        surge=_surge(spec) if pods is None else 0,
        pod=pod,
        claims=tuple(_claim(each) for each in volumes if "ephemeral" in each),
        named_claims={
            each["name"]: each["persistentVolumeClaim"]["claimName"]
            for each in volumes
            if "persistentVolumeClaim" in each
        },
    )


def _surge(spec: Mapping[str, Any]) -> int:
    """So many, or a share of the replicas, rounded up."""
    surge = str(spec["strategy"].get("rollingUpdate", {}).get("maxSurge", 0))
    if surge.endswith("%"):
        return ceil_div(int(spec["replicas"]) * int(surge.removesuffix("%")), 100)
    return int(surge)


def _claim(volume: Mapping[str, Any]) -> Claim:
    spec = volume["ephemeral"]["volumeClaimTemplate"]["spec"]
    size = whole(STORAGE, spec["resources"]["requests"][STORAGE], round_up=True)
    return Claim(volume["name"], spec.get("storageClassName"), size)
