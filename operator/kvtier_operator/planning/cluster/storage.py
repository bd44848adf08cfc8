"""Whether the storage classes and claims that the volumes of a Plan's pods name are there."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.planning.base.names import COMPONENT_LABEL, Component
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod_template.template import ENGINE, OF_COMPONENT
from kvtier_operator.planning.verdict import CheckResult, Verdicts
from kvtier_operator.planning.weights.pod_weights import SOURCE_VOLUME_NAME, VOLUME_NAME

_UNSEEN: Final = Verdicts("namespace", "metadata.namespace")
_STORAGE: Final = Verdicts("storage", "spec.tiers.disk.volume")
_DISK: Final = "spec.tiers.disk"
_DISK_VOLUME: Final = re.compile(r"kv-disk-(\d+)")
_WEIGHTS: Final = "spec.model.volume"
_SOURCE: Final = "spec.model.source"
_CLASS: Final = "ephemeral.storageClassName"
_CLAIM: Final = "persistentVolumeClaim.claimName"
_IN_A_TEMPLATE: Final = {_CLASS: "ephemeral.volumeClaimTemplate.spec.storageClassName"}
CLASS_MISSING: Final = "StorageClassMissing"
_DEFAULT: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A storage class of the cluster, and whether it is the default."""

    name: str
    default: bool


def storage_class_from_object(document: Mapping[str, Any]) -> StorageClass:
    """A StorageClass as the API server has it (storage.k8s.io/v1)."""
    metadata = document["metadata"]
    annotations = metadata.get("annotations") or {}
    return StorageClass(metadata["name"], any(annotations.get(name) == "true" for name in _DEFAULT))


@dataclass(frozen=True, slots=True)
class Namespace:
    """What is known of the storage that a namespace's pods can have."""

    storage_classes: tuple[StorageClass, ...] | None = None  # the cluster's; None where they are not known
    # those of its claims that volumes name and that are there; None where they are not known
    claims: frozenset[str] | None = None
    unseen: tuple[str, ...] = ()  # what could not be looked at, and why


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """The volumes of one Deployment's pods that come from storage classes and claims."""

    component: Component  # whose pods they are
    # storage classes of those that are made with each pod, by volume; None for the default
    classes: Mapping[str, str | None]
    claims: Mapping[str, str]  # claims that must be there, by the volumes that name them


def pod_volumes(plan: Plan) -> list[PodVolumes]:
    """Those of each of a Plan's Deployments."""
    deployments = (document for document in build_objects(plan) if document["kind"] == "Deployment")
    return [_pod_volumes(deployment) for deployment in deployments]


def _pod_volumes(deployment: Mapping[str, Any]) -> PodVolumes:
    volumes = deployment["spec"]["template"]["spec"].get("volumes", ())
    return PodVolumes(
        component=Component(deployment["metadata"]["labels"][COMPONENT_LABEL]),
        classes={
            volume["name"]: volume["ephemeral"]["volumeClaimTemplate"]["spec"].get("storageClassName")
            for volume in volumes
            if "ephemeral" in volume
        },
        claims={
            volume["name"]: volume["persistentVolumeClaim"]["claimName"]
            for volume in volumes
            if "persistentVolumeClaim" in volume
        },
    )


def storage_verdicts(plan: Plan, namespace: Namespace) -> tuple[CheckResult, ...]:
    """What a Plan's pods would wait for in a namespace, and what of it could not be looked at.

    Nothing of it makes a plan wrong: the operator applies it all the same.
    """
    missing = [result for volumes in pod_volumes(plan) for result in _missing(volumes, namespace)]
    return (
        *(missing or (_STORAGE.passed("storage classes and claims are there, as far as known"),)),
        *(
            _UNSEEN.warn(
                "NamespaceNotSeen", f"{why}; ask with more rights", by_itself="plans without", weight=-70
            )
            for why in namespace.unseen
        ),
    )


def _missing(volumes: PodVolumes, namespace: Namespace) -> Iterator[CheckResult]:
    classes, claims = namespace.storage_classes, namespace.claims
    for volume, name in volumes.classes.items() if classes is not None else ():
        names = sorted(storage_class.name for storage_class in classes or ())
        choice = f"name one of {', '.join(names)}" if names else "have one made, or volumes by hand"
        where = _volume_field(volumes.component, volume)
        if name is None and not any(storage_class.default for storage_class in classes or ()):
            yield _reject(CLASS_MISSING, "the cluster has no default storage class", choice, where, _CLASS)
        elif name is not None and name not in names:
            yield _reject(CLASS_MISSING, f"the cluster has no storage class {name}", choice, where, _CLASS)
    for volume, name in volumes.claims.items() if claims is not None else ():
        if name not in (claims or ()):
            lacks = f"the namespace has no PersistentVolumeClaim {name}"
            yield _reject("ClaimMissing", lacks, "make it", _volume_field(volumes.component, volume), _CLAIM)


_WHOSE: Final = dict(
    zip(OF_COMPONENT.values(), ("the engines'", "the picker's", "the gateway's"), strict=True)
)


def _reject(reason: str, lacks: str, choice: str, where: str, key: str) -> CheckResult:
    what = "the volume of their weights" if where in (_WEIGHTS, _SOURCE) else "their disk"
    whose = "the engines'"
    if template := next((path for path in OF_COMPONENT.values() if where.startswith(path)), ""):
        what, whose = "that volume", _WHOSE[template]
        key = _IN_A_TEMPLATE.get(key, key)
    field = where if where == _SOURCE else f"{where}.{key}"
    return _STORAGE.reject(reason, f"{lacks}, so {whose} pods would wait for {what}: {choice}", field=field)


def _volume_field(component: Component, volume: str) -> str:
    """Path of the field behind a volume of a component's pods."""
    if component is not Component.ENGINE:
        return f"{OF_COMPONENT[component]}.spec.volumes[{volume}]"
    own = {VOLUME_NAME: _WEIGHTS, SOURCE_VOLUME_NAME: _SOURCE}
    if volume in own:
        return own[volume]
    disk = _DISK_VOLUME.fullmatch(volume)
    if disk is None:
        return f"{ENGINE}.spec.volumes[{volume}]"
    index = int(disk[1])
    return f"{_DISK}.extraVolumes[{index - 1}]" if index else f"{_DISK}.volume"
