"""Whether the picker knows the size of the device's cache."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.plan import CheckResult
from kvtier_operator.planning.units import count

_VERDICTS: Final = Verdicts("picker-gpu-entries", "spec.engine.gpuMemory")


def picker_gpu_entries(given: CheckInput) -> CheckResult:
    """Without a size the picker takes num_gpu_blocks from metrics, in blocks of its own size."""
    entries = given.router.entries.gpu_prefix
    if entries is not None:
        return _VERDICTS.passed(f"{count(entries)} entries for the device's cache")
    return _VERDICTS.warn(
        "DeviceCacheUnknown",
        "the device's cache is not known before the engine runs, so the GPU prefix scorer's capacity "
        "comes from the engine's metrics; set gpuMemory (with spec.model.weights) or "
        "spec.engine.kvCacheMemory to plan it",
    )
