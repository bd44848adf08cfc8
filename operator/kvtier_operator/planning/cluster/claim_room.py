"""Whether a namespace lets pods have claims of their own for the disk tier, before any is given one.

A pod whose claim cannot be made, or is given no volume, would wait for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.planning.base.container_parts import Mount
from kvtier_operator.planning.base.node import whole_number
from kvtier_operator.planning.cluster.growth import NamespaceRules, Refusal
from kvtier_operator.planning.cluster.storage import CLASS_MISSING, StorageClass
from kvtier_operator.planning.units import many, size

_STORAGE: Final = "storage"
_BYTES: Final = "requests.storage"
_NUMBER: Final = "persistentvolumeclaims"
_OF_CLASS: Final = ".storageclass.storage.k8s.io/"
_FIELD: Final = "spec.tiers.disk.volume.ephemeral.storageClassName"
_WAY_OUT: Final = "lower spec.tiers.disk.capacity"


@dataclass(frozen=True, slots=True)
class Claims:
    """Claims that are made with pods."""

    storage_class: str | None  # None for the default; empty for volumes that somebody made by hand
    bytes: int  # of one
    pods: int  # how many are to be made


def claims_of(disk: Mount | None, disk_bytes: int, pods: int) -> Claims | None:
    """Those of the disk tier; None where it is on the node, or there is none.

    Args:
        disk: The disk tier's volume.
        disk_bytes: Its size.
        pods: How many are to have one; there is to be room for one at least.
    """
    if disk is None or "ephemeral" not in disk.source:
        return None
    template = disk.source["ephemeral"]["volumeClaimTemplate"]["spec"]
    return Claims(template.get("storageClassName"), disk_bytes, max(pods, 1))


def claims_refusal(
    claims: Claims, rules: NamespaceRules, classes: Sequence[StorageClass] | None
) -> Refusal | None:
    """Why pods would wait for their claims; None where nothing speaks against them.

    Args:
        claims: What they are given.
        rules: What their namespace says.
        classes: The cluster's storage classes; None where they are not known.
    """
    name = _default(classes or ()) if claims.storage_class is None else claims.storage_class
    if name != "" and classes is not None and name not in {known.name for known in classes}:
        lacks = f"no storage class {name}" if claims.storage_class else "no default storage class"
        choice = ", ".join(known.name for known in classes)
        way_out = f"name one of {choice} in {_FIELD}" if choice else "have one made"
        return Refusal(
            CLASS_MISSING, f"the cluster has {lacks}, so pods would wait for their disk: {way_out}"
        )
    return _limit_range_refusal(claims, rules) or _quota_refusal(claims, name, rules)


def _default(classes: Sequence[StorageClass]) -> str | None:
    return next((known.name for known in classes if known.default), None)


def _limit_range_refusal(claims: Claims, rules: NamespaceRules) -> Refusal | None:
    for document in rules.limit_ranges:
        for limit in document.get("spec", {}).get("limits") or ():
            if limit.get("type") != "PersistentVolumeClaim":
                continue
            least, most = (_bytes(limit.get(bound) or {}) for bound in ("min", "max"))
            what = ""
            if most is not None and claims.bytes > most:
                what = f"allows a claim {size(most)} of storage"
            elif least is not None and claims.bytes < least:
                what = f"has a claim ask for {size(least)} of storage at least"
            if what:
                name, asked = document["metadata"]["name"], size(claims.bytes)
                return Refusal(
                    "LimitRangeExceeded",
                    f"LimitRange {name} {what}, and the disk tier's asks for {asked}: have it changed, or "
                    "spec.tiers.disk.capacity",
                )
    return None


def _bytes(amounts: Mapping[str, Any]) -> int | None:
    return whole_number(_STORAGE, amounts[_STORAGE]) if _STORAGE in amounts else None


def _quota_refusal(claims: Claims, name: str | None, rules: NamespaceRules) -> Refusal | None:
    asked = {_BYTES: claims.bytes * claims.pods, _NUMBER: claims.pods}
    if name:
        asked |= {f"{name}{_OF_CLASS}{what}": amount for what, amount in asked.items()}
    for document in rules.quotas:
        spec, status = document.get("spec", {}), document.get("status") or {}
        if spec.get("scopes") or spec.get("scopeSelector"):
            continue  # about pods, or about an attribute that these claims do not have
        hard, used = status.get("hard") or spec.get("hard") or {}, status.get("used") or {}
        for counted in sorted(asked.keys() & hard.keys()):
            left = whole_number(counted, hard[counted]) - whole_number(counted, used.get(counted, 0))
            if asked[counted] > left:
                shown = size if counted.endswith(_BYTES) else str
                return Refusal(
                    "QuotaExceeded",
                    f"ResourceQuota {document['metadata']['name']} has {shown(max(left, 0))} of {counted} "
                    f"left, and the disk tier takes {shown(asked[counted])} for {many(claims.pods, 'pod')}: "
                    f"have it raised, or {_WAY_OUT}",
                )
    return None
