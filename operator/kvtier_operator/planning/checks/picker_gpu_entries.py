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
    if not given.router.gpu_from_metrics:
        return _VERDICTS.passed("this picker keeps no index for the device's cache", reason="NotAskedFor")
    field, ways = _unset(given)
    return _VERDICTS.warn(
        "DeviceCacheUnknown",
        "the device's cache is not known before the engine runs, so the GPU prefix scorer's capacity "
        f"comes from the engine's metrics; set {ways} to plan it",
        field=field,
    )


def _unset(given: CheckInput) -> tuple[str, str]:
    """The field that lacks, and what to set: memory and weights tell the size together."""
    missing = [
        name
        for name, known in (
            ("spec.engine.gpuMemory", given.spec.engine.gpu_memory is not None),
            ("spec.model.weights", given.geometry.weights_bytes is not None),
        )
        if not known
    ]
    return missing[0], f"{' with '.join(missing)}, or spec.engine.kvCacheMemory,"
