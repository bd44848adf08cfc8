"""Whether the size of the weights is known where the budget needs it."""

from typing import Final

from kvtier_operator.api.quantity import parse_bytes
from kvtier_operator.api.spec.engine import Device
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.pod.storage import EPHEMERAL_STORAGE
from kvtier_operator.planning.units import size
from kvtier_operator.planning.verdict import CheckResult
from kvtier_operator.planning.weights.pod_weights import (
    is_downloaded,
    moves_weights,
    plan_weights,
    weights_volume_bytes,
)

_VERDICTS: Final = Verdicts("weights-known", "spec.model.weights")


def weights_known(given: CheckInput) -> CheckResult:
    """Weights are part of the pod's memory on device cpu, and of its disk where each pod downloads them."""
    weights = given.geometry.weights_bytes
    if weights is not None:
        return _fit(given, weights)
    lacking = [
        name
        for name, needs in (("memory limit", _in_memory(given)), ("ephemeral-storage", _on_disk(given)))
        if needs
    ]
    if lacking:
        amounts = " and ".join(lacking)
        return _VERDICTS.warn(
            "WeightsUnknown",
            f"the size of the model's weights is not known, and is part of the pod's {amounts}; set it",
            by_itself="leaves them out of that",
        )
    return _VERDICTS.passed("not known, and not needed for memory or disk", reason="Unknown")


def _in_memory(given: CheckInput) -> bool:
    resources = given.spec.engine.resources
    return given.spec.engine.device is Device.CPU and "memory" not in {*resources.requests, *resources.limits}


def _on_disk(given: CheckInput) -> bool:
    return _own_storage(given) is None and (_in_empty_dir(given) or _in_image(given))


def _in_image(given: CheckInput) -> bool:
    weights = plan_weights(given.spec, given.geometry)
    return given.observed.machine is None and weights is not None and "image" in weights.source


def _fit(given: CheckInput, weights_bytes: int) -> CheckResult:
    """A figure of the resource's own stands for all that the engine has on disk, its model included."""
    own, needed = _own_storage(given), weights_volume_bytes(weights_bytes)
    if own is not None and _in_empty_dir(given):
        where, value = own
        if parse_bytes(value) < needed:
            return _VERDICTS.warn(
                "StorageBelowWeights",
                f"{value} stand for all that the engine keeps on its node's disk, and each pod downloads "
                f"{size(weights_bytes)} of weights; raise it above {size(needed)}, or leave it out",
                by_itself="requests that much",
                field=f"spec.engine.resources.{where}.{EPHEMERAL_STORAGE}",
            )
    return _VERDICTS.passed(f"{size(weights_bytes)} of weights")


def _own_storage(given: CheckInput) -> tuple[str, str | int] | None:
    resources = given.spec.engine.resources
    for where, amounts in (("limits", resources.limits), ("requests", resources.requests)):
        if EPHEMERAL_STORAGE in amounts:
            return where, amounts[EPHEMERAL_STORAGE]
    return None


def _in_empty_dir(given: CheckInput) -> bool:
    """Whether pods download them to their node's own disk, in a volume or beside all of them."""
    if given.observed.machine is not None or not is_downloaded(given.spec):
        return False
    weights = plan_weights(given.spec, given.geometry)
    return moves_weights(given.spec) if weights is None else "emptyDir" in weights.source
