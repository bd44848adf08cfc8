"""Whether an engine that computes on the CPU is given any."""

from typing import Final

from kvtier_operator.api.spec.engine import Device
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("cpu-request", "spec.engine.resources.requests.cpu")


def cpu_request(given: CheckInput) -> CheckResult:
    """A pod without a CPU request gets the least weight there is, 2 of 1,024 for a core.

    Source: Kubernetes, pkg/kubelet/cm/helpers_linux.go, MinShares.
    """
    engine = given.spec.engine
    if engine.device is not Device.CPU or given.observed.machine is not None:
        return _VERDICTS.passed("the engine does not compute on a node's CPU")
    asked = engine.resources.requests.get("cpu") or engine.resources.limits.get("cpu")
    if asked is None:
        return _VERDICTS.warn(
            "NoCPURequest",
            "vLLM computes on the CPU and asks for none: beside other pods it gets next to nothing; "
            "set it to the cores that one engine is to have",
            by_itself="requests none",
        )
    return _VERDICTS.passed(f"{asked} of a CPU asked for")
