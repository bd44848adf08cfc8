"""Whether the engine's image is built for the devices that the resource names."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.devices import named_devices
from kvtier_operator.planning.plan import CheckResult

_VERDICTS: Final = Verdicts("device-image", "spec.engine.image")
_OTHER_MAKERS: Final = (
    "amd.com",
    "habana.ai",
    "gpu.intel.com",
    "google.com",
    "aws.amazon.com",
    "huawei.com",
)
"""Domains of device plugins whose devices run no CUDA; that of an unknown one may share NVIDIA's."""


def device_image(given: CheckInput) -> CheckResult:
    """The installation's own images are of vLLM for CUDA, or for CPUs."""
    others = [name for name in named_devices(given.spec) if name.partition("/")[0] in _OTHER_MAKERS]
    if not others or given.spec.engine.image or given.observed.machine is not None:
        return _VERDICTS.passed("no other device than the image's is named")
    return _VERDICTS.warn(
        "ImageOfAnotherDevice",
        f"vLLM in kvtier's own images runs on NVIDIA GPUs, and the engine is to have {', '.join(others)}: "
        "name an image that is built for it",
    )
