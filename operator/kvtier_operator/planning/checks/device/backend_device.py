"""Whether the backend can work on this device."""

from typing import Final

from kvtier_operator.api.spec.engine import Device
from kvtier_operator.api.spec.tiers import DEFAULT_BACKEND
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.pod.devices import is_xpu, not_tested
from kvtier_operator.planning.verdict import CheckResult

_VERDICTS: Final = Verdicts("backend-device", "spec.backend")


def backend_device(given: CheckInput) -> CheckResult:
    """Device cpu makes vLLM 0.32's own offloading raise (v1/kv_offload/cpu/spec.py, get_worker)."""
    backend, device = given.spec.backend, given.spec.engine.device
    needs = given.traits.needs_gpu if device is Device.CPU else None
    if needs and not needs.starts:
        return _VERDICTS.reject(
            "DeviceNotSupported",
            f"{given.traits.title} refuses device cpu and stops at start; set spec.backend to "
            f"{DEFAULT_BACKEND}",
        )
    if needs:
        return _VERDICTS.warn(
            "DeviceNotTested",
            f"backend {backend} is made for GPUs and not tested on device cpu; spec.backend "
            f"{DEFAULT_BACKEND} is",
            by_itself="starts the engines all the same",
        )
    if (others := not_tested(given.spec)) and given.observed.machine is None:
        return _VERDICTS.warn(
            "DeviceNotTested",
            f"backend {backend} is made for GPUs of NVIDIA and AMD and not tested on {', '.join(others)}"
            f"{_why(given, others)}; serve the model there without a KVCacheTier, or try one engine",
            by_itself="starts the engines all the same, with figures of an NVIDIA GPU",
        )
    return _VERDICTS.passed(f"backend {backend} works on device {device}")


def _why(given: CheckInput, others: tuple[str, ...]) -> str:
    """What is known of them: kvtier's connector stands on vLLM's offloading (kv_offload/cpu/spec.py)."""
    if not given.traits.offloading or all(map(is_xpu, others)):
        return ""
    return ", where vLLM's offloading ends the engine: it takes GPUs with CUDA or ROCm and XPUs alone"
