"""When a request is refused because every pod is saturated.

A pod is saturated with `queueDepth` or more requests waiting, or `kvCacheUtilization` or more of its device
cache used: what gateway-api-inference-extension v1.5.0 (saturationdetector/utilization/detector.go) scores 1
or more. That version compares the pods' average with 1; here each one must be saturated, as in v1.2.0
(pkg/epp/saturationdetector): one pod with a long queue says nothing of the others' room.
"""

import numpy as np
from numpy.typing import NDArray

from kvtier_scorer.config.settings.sections import Shed, Shedding
from kvtier_scorer.errors import SaturatedError


def saturated(
    shedding: Shedding,
    queue_depth: NDArray[np.int64],
    kv_cache_utilization: NDArray[np.float64],
    fresh_readings: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Which pods are saturated; the arrays have one place a pod.

    Requests sent since the last reading are not counted: most of them do not wait. A pod without a fresh
    reading counts as saturated, as in the other pickers, but where none has one nobody is: a picker that
    cannot read metrics must not turn the pool off.
    """
    if not fresh_readings.any():
        return fresh_readings
    full_queue: NDArray[np.bool_] = queue_depth >= shedding.queue_depth
    full_cache: NDArray[np.bool_] = kv_cache_utilization >= shedding.kv_cache_utilization
    return full_queue | full_cache | ~fresh_readings


def may_shed(shedding: Shedding, priority: int) -> bool:
    """Whether a request of that priority may be refused."""
    return shedding.shed is Shed.ALL or (shedding.shed is Shed.SHEDDABLE and priority < 0)


def check_saturation(shedding: Shedding, is_saturated: NDArray[np.bool_]) -> None:
    """Refuse a request that may be, where every candidate is saturated.

    Raises:
        SaturatedError: That is so.
    """
    if is_saturated.all():
        pods = "the one pod is" if len(is_saturated) == 1 else f"all {len(is_saturated)} pods are"
        raise SaturatedError(
            f"{pods} saturated: {shedding.queue_depth} or more requests wait, or "
            f"{shedding.kv_cache_utilization:.0%} of the KV cache is used; send it again later"
        )
