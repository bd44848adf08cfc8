"""Whether the storage classes and claims that a Plan's volumes name are there."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.planning.cluster.namespace.fields import SOURCE, WEIGHTS, volume_field
from kvtier_operator.planning.cluster.namespace.workload import Workload
from kvtier_operator.planning.pod_template.template import ENGINE, ROUTER
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("storage", "spec.tiers.disk.volume")
_CLASS: Final = "ephemeral.storageClassName"
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


def storage(
    workloads: Sequence[Workload], classes: Sequence[StorageClass] | None, claims: frozenset[str] | None
) -> tuple[CheckResult, ...]:
    """What is missing.

    Args:
        workloads: The Deployments.
        classes: The cluster's storage classes; None where they are not known.
        claims: Those claims that the volumes name and that are there; None where they are not known.
    """
    missing = [result for each in workloads for result in _missing(each, classes, claims)]
    return tuple(missing) or (_VERDICTS.passed("storage classes and claims are there, as far as known"),)


def _missing(
    workload: Workload, classes: Sequence[StorageClass] | None, claims: frozenset[str] | None
) -> Iterator[CheckResult]:
    for claim in workload.claims if classes is not None else ():
        there = sorted(each.name for each in classes or ())
        choice = f"name one of {', '.join(there)}" if there else "have one made, or volumes by hand"
        key = _CLASS
        if claim.storage_class is None and not any(each.default for each in classes or ()):
            lacks = "the cluster has no default storage class"
            yield _reject(CLASS_MISSING, lacks, choice, volume_field(workload.component, claim.volume), key)
        elif claim.storage_class is not None and claim.storage_class not in there:
            lacks = f"the cluster has no storage class {claim.storage_class}"
            yield _reject(CLASS_MISSING, lacks, choice, volume_field(workload.component, claim.volume), key)
    for volume, name in workload.named_claims.items() if claims is not None else ():
        if name not in (claims or ()):
            lacks = f"the namespace has no PersistentVolumeClaim {name}"
            where = volume_field(workload.component, volume)
            yield _reject("ClaimMissing", lacks, "make it", where, "persistentVolumeClaim.claimName")


def _reject(reason: str, lacks: str, choice: str, where: str, key: str) -> CheckResult:
    what = "the volume of their weights" if where in (WEIGHTS, SOURCE) else "their disk"
    whose = "the engines'"
    if where.startswith((ENGINE, ROUTER)):
        what, whose = "that volume", "the picker's" if where.startswith(ROUTER) else whose
        key = _IN_A_TEMPLATE.get(key, key)
    field = where if where == SOURCE else f"{where}.{key}"
    return _VERDICTS.reject(reason, f"{lacks}, so {whose} pods would wait for {what}: {choice}", field=field)
