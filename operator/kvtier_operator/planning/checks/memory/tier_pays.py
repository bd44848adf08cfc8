"""Whether loading from a tier beats computing again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kvtier_operator.api.spec.engine import Device
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.units import count
from kvtier_operator.planning.verdict import CheckResult, Verdicts
from kvtier_operator.planning.weights.device_weights import active_parameters

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


@dataclass(frozen=True, slots=True)
class _Loading:
    """What one tier takes to load.

    Attributes:
        tier: Its name.
        token_s: Seconds of each token.
        latency_s: Seconds whatever the tokens.
    """

    tier: str
    token_s: float
    latency_s: float

    @property
    def rate(self) -> str:
        """In words."""
        return f"loading from {self.tier} brings {count(int(1 / self.token_s))} tokens/s"

    def pays(self, prefill_s: float) -> str:
        """From how many tokens on: n = latency / (1 / prefill rate - bytes per token / bandwidth)."""
        tokens = int(self.latency_s / (prefill_s - self.token_s)) + 1
        return f"{self.rate}: it pays from {count(tokens)} cached tokens on"


def tier_pays(given: CheckInput) -> CheckResult:
    """Whether each tier is read sooner than a prompt is computed, by the parameters that compute a token."""
    speed, ranks = _SPEEDS[given.spec.engine.device], given.spec.engine.tensor_parallel_size
    tiers = _loading(given, speed)
    computing = active_parameters(given.geometry)
    if computing is None:
        limits = ", ".join(each.rate for each in tiers)
        return _VERDICTS.passed(f"{limits}: it pays where prefill is slower", reason="PrefillUnknown")
    prefill_s = _OPERATIONS_PER_PARAMETER * computing.parameters / (speed.flops_per_rank * ranks)
    prefill = f"prefill computes about {count(int(1 / prefill_s))} tokens/s"
    slow = [each for each in tiers if each.token_s >= prefill_s]
    if slow:
        return _does_not_pay(given, slow, prefill)
    per_tier = "; ".join(each.pays(prefill_s) for each in tiers)
    return _VERDICTS.passed(f"{prefill}; {per_tier}", reason="Pays")


def _loading(given: CheckInput, speed: _Speed) -> tuple[_Loading, ...]:
    geometry = given.geometry
    cpu_s = geometry.kv_bytes_per_token_per_rank / speed.cpu_bytes_per_s
    memory = _Loading("CPU", cpu_s, speed.cpu_latency_s)
    if given.tiers.disk is None:
        return (memory,)
    disk_s = geometry.kv_bytes_per_token / speed.disk_bytes_per_s
    return memory, _Loading("disk", disk_s, speed.disk_latency_s)


def _does_not_pay(given: CheckInput, slow: Sequence[_Loading], prefill: str) -> CheckResult:
    disk = slow[0].tier == "disk"
    advice = "leave the disk tier out" if disk else "serve this model without a KVCacheTier"
    measures = disk and given.traits.disk.measures
    return _VERDICTS.warn(
        "TierDoesNotPay",
        f"{', '.join(each.rate for each in slow)}, {prefill}: computing again is faster; {advice} unless "
        "`kvtier bench` shows otherwise",
        by_itself=(
            "measures both while it serves, and reads and writes the disk only where it is sooner"
            if measures
            else "lets the backend load from it all the same"
        ),
        field=f"spec.tiers.{slow[0].tier.lower()}",
    )
