"""Whether the size of the weights is known where the budget needs it."""

from typing import Final

from kvtier_operator.api.engine import Device
from kvtier_operator.api.quantity import parse_bytes
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.plan import CheckResult
from kvtier_operator.planning.storage import EPHEMERAL_STORAGE
from kvtier_operator.planning.units import size
from kvtier_operator.planning.weights import is_downloaded, plan_weights, weights_volume_bytes

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
        return _VERDICTS.warn(
            "WeightsUnknown",
            f"the size of the model's weights is not known, so the pod's {' and '.join(lacking)} "
            f"leave{'s' if len(lacking) == 1 else ''} them out; set it",
        )
    return _VERDICTS.passed("not known, and not needed for memory or disk", reason="Unknown")


def _in_memory(given: CheckInput) -> bool:
    resources = given.spec.engine.resources
    return given.spec.engine.device is Device.CPU and "memory" not in {*resources.requests, *resources.limits}


def _on_disk(given: CheckInput) -> bool:
    return _own_storage(given) is None and _in_empty_dir(given)


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
    """Whether pods download them to their node's own disk."""
    weights = plan_weights(given.spec, given.geometry)
    return (
        given.observed.machine is None
        and is_downloaded(given.spec)
        and weights is not None
        and "emptyDir" in weights.source
    )
