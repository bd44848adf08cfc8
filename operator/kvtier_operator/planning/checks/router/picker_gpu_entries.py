"""Where the picker has the size of the device's cache from."""

from typing import Final

from kvtier_common.tier import Tier
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.units import count
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("picker-gpu-entries", "spec.engine.gpuMemory")


def picker_gpu_entries(given: CheckInput) -> CheckResult:
    """Nothing to look at: the operator asks the first engine (planning/tiers/observed_tiers.py).

    Until then the picker takes num_gpu_blocks from metrics, in blocks of its own size, and has no engine to
    send anything to.
    """
    entries = given.router.entries.get(Tier.GPU)
    if entries is not None:
        return _VERDICTS.passed(f"{count(entries)} entries for the device's cache")
    if not given.router.gpu_from_metrics:
        return _VERDICTS.passed("this picker keeps no index for the device's cache", reason="NotAskedFor")
    missing = _missing(given)
    return _VERDICTS.passed(
        "the device's cache is not known before the engine runs: the operator asks the first one that is "
        "ready, and the picker starts anew once with its entries; to have them in the plan, or without an "
        f"operator, set {' with '.join(missing)}{', or ' if missing else ''}spec.engine.kvCacheMemory",
        reason="LeftToOperator",
        field=missing[0] if missing else "spec.engine.kvCacheMemory",
    )


def _missing(given: CheckInput) -> list[str]:
    """Fields that lack: memory and weights tell the size together."""
    return [
        name
        for name, known in (
            ("spec.engine.gpuMemory", given.spec.engine.gpu_memory is not None),
            ("spec.model.weights", given.geometry.weights_bytes is not None),
        )
        if not known
    ]
