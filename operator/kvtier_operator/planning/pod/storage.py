"""What an engine pod takes of its node's disk, line by line: what the kubelet counts as ephemeral storage."""

from collections.abc import Iterable
from typing import Final

from kvtier_operator.api.quantity import parse_bytes
from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.pod.budget_plan import BudgetLine
from kvtier_operator.planning.pod.container_parts import Mount
from kvtier_operator.planning.units import GIB
from kvtier_operator.planning.weights.pod_weights import weights_volume_bytes

EPHEMERAL_STORAGE: Final = "ephemeral-storage"
LOGS_AND_SCRATCH_BYTES: Final = GIB
"""Logs, the container's writable layer and compile caches: an allowance."""
_WEIGHTS_LINES: Final = ("model weights", "beside the weights")
_OWN_LINE: Final = "the engine's own"
_LOGS_LINE: Final = "logs and scratch"
_DISK_LINES: Final = ("disk tier", "beside the disk tier")


def plan_storage(
    spec: Spec, disk: Iterable[Mount], weights: Mount | None, moved_bytes: int = 0
) -> tuple[BudgetLine, ...]:
    """The lines whose sum the pod requests; none where nothing is known that is worth a request.

    Args:
        spec: What is wanted.
        disk: Volumes of the disk tier.
        weights: Volume of the model's weights.
        moved_bytes: Weights that are downloaded beside any volume.
    """
    tier = _lines(
        disk, _DISK_LINES, "spec.tiers.disk.capacity", "a tenth: what a filesystem keeps for itself"
    )
    if own := _own(spec):
        return (own, *tier)
    downloaded = _lines(
        (weights,) if weights else (),
        _WEIGHTS_LINES,
        "each pod downloads them once, for all its engines",
        "a tenth, at least 1 GiB: tokenizer, what a download leaves",
    )
    downloaded += _image(weights) + _moved(moved_bytes)
    if not tier and not downloaded:
        return ()
    logs = BudgetLine(_LOGS_LINE, LOGS_AND_SCRATCH_BYTES, "logs, the writable layer, compile caches")
    return (*downloaded, *tier, logs)


def _image(weights: Mount | None) -> tuple[BudgetLine, ...]:
    """An image that is mounted: the kubelet evicts no pod for it, and the node must have the room."""
    if weights is None or "image" not in weights.source or not weights.payload_bytes:
        return ()
    why = "an image volume, in the node's image store, where pods of one node share it"
    return (BudgetLine(_WEIGHTS_LINES[0], weights.payload_bytes, why),)


def _moved(weights_bytes: int) -> tuple[BudgetLine, ...]:
    """Downloads that the resource's environment puts into the container's writable layer."""
    if not weights_bytes:
        return ()
    names, beside = _WEIGHTS_LINES, weights_volume_bytes(weights_bytes) - weights_bytes
    return (
        BudgetLine(names[0], weights_bytes, "where spec.engine.env moves them, in the container's own layer"),
        BudgetLine(names[1], beside, "a tenth, at least 1 GiB: tokenizer, what a download leaves"),
    )


def storage_bytes(lines: Iterable[BudgetLine]) -> int:
    """What the lines come to."""
    return sum(line.bytes for line in lines)


def without_weights(lines: Iterable[BudgetLine]) -> tuple[BudgetLine, ...]:
    """The lines of a pod that downloads nothing; none where only the allowance would be left."""
    kept = tuple(line for line in lines if line.what not in _WEIGHTS_LINES)
    return kept if any(line.what != _LOGS_LINE for line in kept) else ()


def tier_bytes(lines: Iterable[BudgetLine]) -> int:
    """What of the lines is the disk tier's, which comes on top of the engine's own."""
    return sum(line.bytes for line in lines if line.what in _DISK_LINES)


def weights_bytes(lines: Iterable[BudgetLine]) -> int:
    """What of the lines is for the model's weights."""
    return sum(line.bytes for line in lines if line.what in _WEIGHTS_LINES)


def own_bytes(lines: Iterable[BudgetLine]) -> int:
    """What of the lines the resource asks for itself, whatever it is for."""
    return sum(line.bytes for line in lines if line.what == _OWN_LINE)


def _own(spec: Spec) -> BudgetLine | None:
    """The engine without tiers, as the resource says."""
    resources = spec.engine.resources
    for where, given in (("requests", resources.requests), ("limits", resources.limits)):
        if EPHEMERAL_STORAGE in given:
            value = given[EPHEMERAL_STORAGE]
            why = f"{value} of resources.{where}.{EPHEMERAL_STORAGE}"
            return BudgetLine(_OWN_LINE, parse_bytes(value), why)
    return None


def _lines(mounts: Iterable[Mount], names: tuple[str, str], *whys: str) -> tuple[BudgetLine, ...]:
    """What emptyDir volumes are to hold, and the rest of their sizeLimit."""
    counted = [
        (mount.payload_bytes, parse_bytes(mount.source["emptyDir"]["sizeLimit"]))
        for mount in mounts
        if "sizeLimit" in mount.source.get("emptyDir", {})
    ]
    payload = sum(payload for payload, _ in counted)
    beside = sum(limit for _, limit in counted) - payload
    lines = zip(names, (payload, beside), whys, strict=True)
    return tuple(BudgetLine(*line) for line in lines) if counted else ()
