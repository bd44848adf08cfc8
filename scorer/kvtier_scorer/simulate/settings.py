"""Sizes and speeds of the simulated pods, and how long things take on them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final

from kvtier_common.tier import OF_A_POD, Tier
from kvtier_scorer.simulate.trace import PoolError

_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSettings:
    """One pod: an engine with its tiers; raises PoolError where a size or speed makes no sense."""

    block_tokens: int  # tokens in a KV block
    kv_bytes_per_token: int  # of all layers and ranks
    # blocks of each tier, the device's cache among them; 0 of a tier that is not there
    blocks: Mapping[Tier, int]
    max_running: int  # requests that run at once (`max_num_seqs`)
    step_tokens: int  # tokens computed in one step at most (`max_num_batched_tokens`)
    prefill_tokens_per_s: float  # prefill without attention
    # pairs of a computed token and a token before it that attention gets through
    attention_pairs_per_s: float
    step_s: float  # a step's least time: weights read once, launches
    kv_read_bytes_per_s: float  # KV cache read while decoding
    load_bytes_per_s: Mapping[Tier, float]  # from each other tier to the device

    def __post_init__(self) -> None:
        numbers = {name: getattr(self, name) for name in self.__slots__}
        blocks, speeds = numbers.pop("blocks"), numbers.pop("load_bytes_per_s")
        numbers |= {f"{tier.label}_load_bytes_per_s": speed for tier, speed in speeds.items()}
        numbers["gpu_blocks"] = blocks[Tier.GPU]
        for name, number in numbers.items():
            if not number > 0:
                raise PoolError(f"{name}: must be more than 0, not {number}")
        for tier in OF_A_POD[1:]:
            if blocks[tier] < 0:
                raise PoolError(f"{tier.label}_blocks: must be 0 or more, not {blocks[tier]}")

    @property
    def block_bytes(self) -> int:
        """Bytes of one KV block, of all layers and ranks."""
        return self.block_tokens * self.kv_bytes_per_token


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """The store of the remote tier, one for all pods; raises PoolError where a number makes no sense."""

    blocks: int  # that it holds, all pods together
    pod_bytes_per_s: float  # from it to one pod
    bytes_per_s: float = inf  # from it to all pods together; its own network is no bound by default

    def __post_init__(self) -> None:
        for name in ("blocks", "pod_bytes_per_s", "bytes_per_s"):
            if not getattr(self, name) > 0:
                raise PoolError(f"remote_{name}: must be more than 0, not {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class TenantShare:
    """A tenant's parts of every tier, from 0 to 1; raises PoolError where they make no sense."""

    guaranteed: float  # no other's store makes it hold less
    most: float  # of what it holds beyond, its own blocks leave first

    def __post_init__(self) -> None:
        if not 0 <= self.guaranteed <= self.most <= 1 or not self.most:
            raise PoolError(
                f"guaranteed and most must be parts from 0% to 100%, most the larger, not "
                f"{self.guaranteed:.0%} and {self.most:.0%}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSettings:
    """The pods; raises PoolError where there are none, or a number makes no sense."""

    pods: int  # how many, all alike
    pod: PodSettings  # each of them
    store: StoreSettings | None = None  # behind all of them; None for no remote tier
    scrape_interval_s: float = 0.05  # between two readings of a pod's metrics; policies see the last one
    """llm-d-router's default, 50 ms (pkg/epp/server/options.go, MinRefreshMetricsInterval)."""
    retained: float = 0.3  # part of each tier behind the device's that hints may keep
    tenants: Mapping[str, TenantShare] = field(default_factory=dict)  # by name

    def __post_init__(self) -> None:
        if not 0 <= self.retained <= 1:
            raise PoolError(f"retained: must be a part from 0% to 100%, not {self.retained:.0%}")
        guaranteed = sum(share.guaranteed for share in self.tenants.values())
        if guaranteed > 1 + _ROUNDING:
            raise PoolError(f"--tenant: {guaranteed:.0%} are guaranteed in all, which is more than there is")
        if self.pods < 1:
            raise PoolError(f"pods: must be 1 or more, not {self.pods}")
        if not self.scrape_interval_s > 0:
            raise PoolError(f"scrape_interval_s: must be more than 0, not {self.scrape_interval_s}")


_KV_BYTES_PER_TOKEN: Final = 2 * 64 * 8 * 128 * 2
_CPU_TIER_BYTES: Final = 100 * 1024**3

QWEN3_32B_2X_H100: Final = PodSettings(
    block_tokens=16,
    kv_bytes_per_token=_KV_BYTES_PER_TOKEN,
    blocks={
        **dict.fromkeys(OF_A_POD, 0),
        Tier.GPU: 9_271,
        Tier.CPU: _CPU_TIER_BYTES // (16 * _KV_BYTES_PER_TOKEN),
    },
    max_running=1_024,
    step_tokens=8_192,
    prefill_tokens_per_s=15_000.0,
    attention_pairs_per_s=4.7e8,
    step_s=0.015,
    kv_read_bytes_per_s=4.7e12,
    load_bytes_per_s={**dict.fromkeys(OF_A_POD[1:], 5e9), Tier.CPU: 40e9},
)
"""Qwen3-32B in bf16 on two H100 (tensor parallel), as llm-d's guide measured it.

- `block_tokens`: vLLM's default on CUDA (config/cache.py).
- `kv_bytes_per_token`: keys and values of 64 layers, 8 KV heads, head size 128, 2 bytes.
- `blocks` of the device: "9271 GPU blocks available per engine" (llm-d 0.4.0,
  guides/tiered-prefix-cache/cpu/README.md).
- `blocks` of the CPU tier: 100 GiB over those bytes, 25,600.
- `max_running`, `step_tokens`: vLLM 0.33.0's defaults of its server on an H100 (engine/arg_utils.py).
- `prefill_tokens_per_s`: 2 x 32.8e9 FLOP a token over 2 x 989e12 FLOP/s (H100 SXM, dense bf16, NVIDIA's data
  sheet); that half of it is reached is an allowance.
- `attention_pairs_per_s`: 4 x 64 layers x 64 heads x 128 FLOP a pair, likewise at half.
- `step_s`: the guide's low cache took (18.4 - 0.12) s / 1,023 = 17.9 ms a token at 45 / 8 requests an engine,
  of which reading their KV takes 2.8 ms.
- `kv_read_bytes_per_s`: 2 x 3.35e12 byte/s at 70 %, an allowance.
- `load_bytes_per_s` of the CPU tier: PCIe 5.0 x16 carries 63e9 byte/s a GPU; 20e9 of them a GPU is an
  allowance for copies of single blocks.
- `load_bytes_per_s` of the disk: a local NVMe disk, an allowance.
"""

PRESETS: Final[Mapping[str, PodSettings]] = {"qwen3-32b-2xh100": QWEN3_32B_2X_H100}


def load_s(pod: PodSettings, blocks: Mapping[Tier, int]) -> float:
    """Seconds to bring blocks of other tiers to the device; bytes over bandwidth, tier by tier."""
    return pod.block_bytes * sum(number / pod.load_bytes_per_s[tier] for tier, number in blocks.items())


def compute_s(pod: PodSettings, new_tokens: int, found_tokens: int) -> float:
    """Seconds that a prompt's computed tokens take by themselves.

    The linear layers take `new / prefill rate`; each new token attends to all before it, so there are
    `new x found + new (new + 1) / 2` pairs.
    """
    pairs = new_tokens * found_tokens + new_tokens * (new_tokens + 1) / 2
    return new_tokens / pod.prefill_tokens_per_s + pairs / pod.attention_pairs_per_s


def step_s(pod: PodSettings, context_tokens: float) -> float:
    """Seconds of a step that computes one token of each running request, with `context_tokens` in all."""
    return pod.step_s + context_tokens * pod.kv_bytes_per_token / pod.kv_read_bytes_per_s
