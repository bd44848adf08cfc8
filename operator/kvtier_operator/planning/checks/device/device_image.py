"""Whether the engine's image is built for the devices that the resource names."""

from typing import Final

from kvtier_operator.planning.base.devices import without_cuda
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("device-image", "spec.engine.image")


def device_image(given: CheckInput) -> CheckResult:
    """The installation's own images are of vLLM for CUDA, or for CPUs."""
    others = without_cuda(given.spec)
    if not others or given.spec.engine.image or given.observed.machine is not None:
        return _VERDICTS.passed("no other device than the image's is named")
    return _VERDICTS.warn(
        "ImageOfAnotherDevice",
        f"vLLM in kvtier's own images runs on NVIDIA GPUs, and the engine is to have {', '.join(others)}: "
        "name an image that is built for it",
    )
