"""Copies of KV blocks between a GPU and the tier's memory, beside one cudaMemcpy of as many bytes.

What is timed is what a rank does, without an engine around it: a plan for random blocks and slots, and the
copier that the worker uses. The measure beside it is one copy of page-locked memory in one piece.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any, Final, Literal

import numpy as np
import torch

from kvtier_connector.bench.measure import Row, Run
from kvtier_connector.bench.region import reserve_hugepages
from kvtier_connector.config import GIB, Policy
from kvtier_connector.core.copies.copyplan import CopyPlan, Layout, Page, plan_copies
from kvtier_connector.core.region import pin, region
from kvtier_connector.core.region.pages import pieces_of
from kvtier_connector.errors import ConnectorError
from kvtier_connector.vllm.copies.copier import Copier

BLOCK_BYTES: Final = (16 << 10, 128 << 10, 512 << 10, 2 << 20, 8 << 20)
_KERNEL_UP_TO_BYTES: Final = 512 << 10
"""Copies to the device up to this size are measured by vLLM's kernel, too."""
Direction = Literal["to_device", "from_device"]
DIRECTIONS: Final[tuple[Direction, ...]] = ("to_device", "from_device")


class Gpu:
    """A CUDA device; ConnectorError where there is none."""

    def __init__(self) -> None:
        if not torch.cuda.is_available():
            raise ConnectorError(
                f"no GPU: PyTorch {torch.__version__} finds no CUDA device; run this where vLLM serves on one"
            )
        from kvtier_connector.vllm.copies.copier_cuda import CudaCopier  # noqa: PLC0415 - needs CUDA

        self._copier = CudaCopier()
        self.copier: Copier = self._copier

    def start_by_kernel(self, plan: CopyPlan) -> None:
        """Begin copies to the device by vLLM's kernel, whatever their size."""
        usual, self._copier.kernel_below_bytes = self._copier.kernel_below_bytes, 1 << 62
        try:
            self._copier.start(0, plan, to_device=True)
        finally:
            self._copier.kernel_below_bytes = usual

    def pin(self, memory: region.Slice) -> str:
        """Page-lock the tier's memory; returns how that went, for people."""
        pinning = pin.by_driver(Policy.PREFER, self._copier.register)
        return str(pin.lock(memory, pieces_of(1, memory.size_bytes), pinning))

    def staging(self, size_bytes: int) -> torch.Tensor:
        """Return page-locked memory."""
        return torch.empty(size_bytes, dtype=torch.uint8, pin_memory=True)

    def kv_cache(self, size_bytes: int) -> torch.Tensor:
        """Return so many bytes on the device."""
        return torch.ones(size_bytes, dtype=torch.uint8, device="cuda")

    def whole(self, device: torch.Tensor, host: torch.Tensor, direction: Direction) -> float:
        """Copy in one piece; returns the seconds that it took, by the device's clock."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        if direction == "to_device":
            device.copy_(host, non_blocking=True)
        else:
            host.copy_(device, non_blocking=True)
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1e-3


@dataclass(frozen=True, slots=True)
class _Memories:
    device: torch.Tensor
    memory: region.Slice
    staging: torch.Tensor  # of a sample's size, for the copy in one piece


def measure(_run: Run) -> list[dict[str, Any]]:
    """Measure both directions on a GPU; see `bench_gpu`."""
    return bench_gpu()


def rows(copies: list[dict[str, Any]]) -> Iterator[Row]:
    """Return rows of what `measure` returns."""
    for row in copies:
        yield (
            f"copy {row['direction'].replace('_', ' ')}, blocks of {row['block_kib']} KiB, GB/s",
            f"{row['kvtier_gbps']:.2f}, {row['over_peak']:.3f} of the peak",
            f"one cudaMemcpy {row['peak_gbps']:.2f}"
            + (f", vLLM's kernel {row['kernel_gbps']:.2f}" if "kernel_gbps" in row else ""),
            "0.95 of the peak from 512 KiB",
        )


def bench_gpu(
    device: Gpu | None = None,
    *,
    block_bytes: Sequence[int] = BLOCK_BYTES,
    kept_bytes: int = 2 * GIB,
    sample_bytes: int = GIB // 2,
    rounds: int = 15,
) -> list[dict[str, Any]]:
    """Measure both directions for each size of blocks; the two sides take turns.

    `kept_bytes` are those of the KV cache and of the region, `sample_bytes` what one sample copies, in blocks
    drawn at random. A row has medians in 1e9 bytes a second, their quartiles, and `over_peak`, the median of
    kvtier's bandwidth over that of one copy in the same round.
    """
    device = device or Gpu()
    with reserve_hugepages(kept_bytes):
        request = region.RegionRequest(1, kept_bytes, False, Policy.PREFER, 2 << 20)  # noqa: FBT003
        memories = _Memories(device.kv_cache(kept_bytes), region.alone(request), device.staging(sample_bytes))
        try:
            pinned = device.pin(memories.memory)
            rows = [
                _compare(device, memories, size, direction, sample_bytes // size, rounds)
                for size in block_bytes
                for direction in DIRECTIONS
            ]
        finally:
            device.copier.close()
    return [row | {"region": str(memories.memory.report), "pinned": pinned} for row in rows]


def _compare(  # noqa: PLR0913, PLR0917 - what a sample is made of
    device: Gpu, memories: _Memories, size: int, direction: Direction, blocks: int, rounds: int
) -> dict[str, Any]:
    layout = Layout(((Page(memories.device.data_ptr(), size, 0, size),),), 1, size, memories.memory.address)
    count = memories.memory.size_bytes // size
    numbers = random.Random(size)  # noqa: S311 - not a secret
    part = memories.device[: len(memories.staging)]

    def plan() -> CopyPlan:
        device_blocks = np.array(numbers.sample(range(count), blocks), np.int32)
        slots = np.array(numbers.sample(range(count), blocks), np.int32)
        return plan_copies(layout, device_blocks, slots, [blocks], [0])

    def ours() -> float:
        device.copier.start(0, plan(), to_device=direction == "to_device")
        return _took_s(device.copier, direction)

    def by_kernel() -> float:
        device.start_by_kernel(plan())
        return _took_s(device.copier, direction)

    sides: dict[str, Callable[[], float]] = {
        "kvtier": ours,
        "peak": lambda: device.whole(part, memories.staging, direction),
    }
    if direction == "to_device" and size <= _KERNEL_UP_TO_BYTES:
        sides["kernel"] = by_kernel
    gbps: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds + 1):  # the first is thrown away: both warm up
        for name in numbers.sample(list(sides), len(sides)):
            total = len(memories.staging) if name == "peak" else blocks * size
            seconds = sides[name]()
            if number:
                gbps[name].append(total / seconds / 1e9)
    figures: dict[str, Any] = {"block_kib": size >> 10, "direction": direction}
    for name, samples in gbps.items():
        low, _, high = quantiles(samples) if len(samples) > 1 else samples * 3
        figures |= {f"{name}_gbps": median(samples), f"{name}_gbps_quartiles": [low, high]}
    pairs = zip(gbps["kvtier"], gbps["peak"], strict=True)
    return figures | {"over_peak": median(mine / peak for mine, peak in pairs)}


def _took_s(copier: Copier, direction: Direction) -> float:
    copier.wait([0])
    (outcome,) = copier.take_finished()
    if outcome.error is not None:
        raise ConnectorError(f"a copy {direction} failed: {outcome.error}")
    return outcome.seconds
