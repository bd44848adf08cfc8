"""Whether loading from a tier beats computing again."""

from dataclasses import dataclass
from typing import Final

from kvtier_operator.api.engine import Device
from kvtier_operator.api.resource import Backend
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.plan import CheckResult
from kvtier_operator.planning.units import count

_VERDICTS: Final = Verdicts("tier-pays", "spec.tiers")


@dataclass(frozen=True, slots=True)
class _Speed:
    """Planning values; `kvtier bench` measures the machine's own.

    Attributes:
        flops_per_rank: Floating-point operations a second that prefill reaches.
        cpu_bytes_per_s: From the CPU tier to one rank.
        cpu_latency_s: Lookup and one scheduling step.
        disk_bytes_per_s: From the disk tier, all ranks together.
        disk_latency_s: Lookup, queueing and scheduling steps.
    """

    flops_per_rank: float
    cpu_bytes_per_s: float
    cpu_latency_s: float
    disk_bytes_per_s: float = 2e9  # NVMe over a filesystem: 1.4 to 2.4 GB/s measured under vLLM's fs tier
    disk_latency_s: float = 20e-3


_SPEEDS: Final = {
    # H100: 40 % of 989 TFLOP/s dense bf16; 40 to 51 GB/s to the device above 28 KiB pieces (vLLM #42212).
    Device.CUDA: _Speed(flops_per_rank=4e14, cpu_bytes_per_s=40e9, cpu_latency_s=5e-3),
    # Two cores: 15,400 tokens of a Llama of 73 million parameters in 12.06 s; 5 ms over a device hit.
    Device.CPU: _Speed(flops_per_rank=1.9e11, cpu_bytes_per_s=4e9, cpu_latency_s=5e-3),
}
_OPERATIONS_PER_PARAMETER: Final = (
    2  # a multiply and an add for each weight and token (Kaplan et al., 2001.08361)
)
_BYTES_PER_PARAMETER: Final = 2


def tier_pays(given: CheckInput) -> CheckResult:
    """Break-even tokens of the slowest tier: n = latency / (1 / prefill rate - bytes per token / bandwidth).

    The prefill rate is estimated from the weights, all of them used for every token: too low for
    mixture-of-experts models, whose break-even is therefore later than said.
    """
    speed, geometry = _SPEEDS[given.spec.engine.device], given.geometry
    ranks = given.spec.engine.tensor_parallel_size
    disk = given.tiers.disk is not None
    latency_s = speed.disk_latency_s if disk else speed.cpu_latency_s
    if disk:
        load_s = geometry.kv_bytes_per_token / speed.disk_bytes_per_s
    else:
        load_s = geometry.kv_bytes_per_token_per_rank / speed.cpu_bytes_per_s
    tier = "disk" if disk else "CPU"
    limit = f"loading from {tier} brings {count(int(1 / load_s))} tokens/s"
    if geometry.weights_bytes is None:
        return _VERDICTS.passed(f"{limit}: it pays where prefill is slower", reason="PrefillUnknown")
    parameters = geometry.weights_bytes / _BYTES_PER_PARAMETER
    prefill_s = _OPERATIONS_PER_PARAMETER * parameters / (speed.flops_per_rank * ranks)
    rates = f"{limit}, prefill computes about {count(int(1 / prefill_s))} tokens/s"
    if load_s >= prefill_s:
        advice = "leave the disk tier out" if disk else "serve this model without a KVCacheTier"
        measures = disk and given.spec.backend is Backend.KVTIER
        return _VERDICTS.warn(
            "TierDoesNotPay",
            f"{rates}: computing again is faster; {advice} unless `kvtier bench` shows otherwise",
            by_itself=(
                "measures both while it serves, and reads and writes the disk only where it is sooner"
                if measures
                else "lets the backend load from it all the same"
            ),
            field=f"spec.tiers.{tier.lower()}",
        )
    tokens = int(latency_s / (prefill_s - load_s)) + 1
    return _VERDICTS.passed(f"{rates}: it pays from {count(tokens)} cached tokens on", reason="Pays")
