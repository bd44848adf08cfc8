"""Whether the size of the weights is known where the budget needs it."""

from typing import Final

from kvtier_operator.api.engine import Device
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.plan import CheckResult
from kvtier_operator.planning.units import size

_VERDICTS: Final = Verdicts("weights-known", "spec.model.weights")


def weights_known(given: CheckInput) -> CheckResult:
    """On device cpu weights are part of the pod's memory; on cuda they only decide the GPU tier's size."""
    weights, resources = given.geometry.weights_bytes, given.spec.engine.resources
    if weights is not None:
        return _VERDICTS.passed(f"{size(weights)} of weights")
    if given.spec.engine.device is Device.CPU and "memory" not in {*resources.requests, *resources.limits}:
        return _VERDICTS.warn(
            "WeightsUnknown",
            "the size of the model's weights is not known, so the memory limit leaves them out; set it, or "
            "spec.engine.resources.requests.memory",
        )
    return _VERDICTS.passed("not known, and not needed for the memory limit", reason="Unknown")
