"""What loading from a tier of a pod takes, and from how many cached tokens on it is sooner than computing."""

from dataclasses import dataclass, replace
from typing import Final

from kvtier_common.tier import Tier
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.engine import Device, EngineSpec
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.weights.pace import prefill_token_s

_LINK_SHARE: Final = 0.625
"""What copies to the device reach of the link: 40 GB/s of PCIe 5's 64 (vLLM #42212)."""


@dataclass(frozen=True, slots=True)
class _Speed:
    """Planning values; `kvtier bench` measures the machine's own.

    Attributes:
        cpu_bytes_per_s: From the CPU tier to one rank.
        cpu_latency_s: Lookup and one scheduling step.
        disk_bytes_per_s: From the disk tier, all ranks together, where the resource does not say.
        disk_latency_s: Lookup, queueing and scheduling steps.
    """

    cpu_bytes_per_s: float
    cpu_latency_s: float
    disk_bytes_per_s: float = 2e9  # NVMe over a filesystem: 1.4 to 2.4 GB/s measured under vLLM's fs tier
    disk_latency_s: float = 20e-3


_SPEEDS: Final = {
    # 40 to 51 GB/s to the device above 28 KiB pieces (vLLM #42212).
    Device.GPU: _Speed(cpu_bytes_per_s=40e9, cpu_latency_s=5e-3),
    # Two cores; 5 ms over a device hit.
    Device.CPU: _Speed(cpu_bytes_per_s=4e9, cpu_latency_s=5e-3),
}


def _speed(engine: EngineSpec) -> _Speed:
    speed = _SPEEDS[engine.device]
    if engine.gpu is None:
        return speed
    return replace(speed, cpu_bytes_per_s=_LINK_SHARE * engine.gpu.link_bytes_per_s)


@dataclass(frozen=True, slots=True)
class Loading:
    """What one tier takes to load, beside computing."""

    tier: Tier
    token_s: float  # seconds of each token
    latency_s: float  # seconds whatever the tokens
    prefill_s: float | None  # seconds that computing a token takes; None where nothing tells

    @property
    def pays(self) -> bool | None:
        """Whether long prefixes come back sooner than they are computed; None where nothing tells."""
        return None if self.prefill_s is None else self.token_s < self.prefill_s

    @property
    def break_even_tokens(self) -> int | None:
        """From how many cached tokens on it pays; None where it never does, or nothing tells.

        n = latency / (1 / prefill rate - bytes per token / bandwidth).
        """
        if self.prefill_s is None or self.token_s >= self.prefill_s:
            return None
        return int(self.latency_s / (self.prefill_s - self.token_s)) + 1


def loadings(spec: Spec, geometry: Geometry) -> tuple[Loading, ...]:
    """Of each tier that a pod has for itself, the faster first."""
    speed, prefill_s = _speed(spec.engine), prefill_token_s(spec.engine, geometry)
    cpu_s = geometry.kv_bytes_per_token_per_rank / speed.cpu_bytes_per_s
    memory = Loading(Tier.CPU, cpu_s, speed.cpu_latency_s, prefill_s)
    if (disk := spec.tiers.disk) is None:
        return (memory,)
    # of a pod, whose engines read at the same time
    disk_bytes_per_s = (
        disk.bandwidth.bytes / spec.engine.data_parallel_size if disk.bandwidth else speed.disk_bytes_per_s
    )
    disk_s = geometry.kv_bytes_per_token / disk_bytes_per_s
    return memory, Loading(Tier.DISK, disk_s, speed.disk_latency_s, prefill_s)
