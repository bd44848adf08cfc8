"""The benchmark of copies to and from a GPU, on a device that is memory, and its refusal without a GPU."""

import time
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from kvtier_connector.bench.command import connector
from kvtier_connector.bench.gpu import Direction, Gpu, bench_gpu, rows
from kvtier_connector.config import MIB
from kvtier_connector.core.copies.copyplan import CopyPlan
from kvtier_connector.core.region.region import Slice
from kvtier_connector.errors import ConnectorError
from kvtier_connector.vllm.copies.copier import Copier, CopyResult, MemcpyCopier


class Memory(Gpu):
    """A device that is ordinary memory."""

    def __init__(self) -> None:
        self.copier: Copier = MemcpyCopier()
        self.cache = torch.empty(0)
        self.slice: Slice | None = None

    def start_by_kernel(self, plan: CopyPlan) -> None:
        self.copier.start(0, plan, to_device=True)

    def pin(self, memory: Slice) -> str:
        self.slice = memory
        return "not locked"

    def staging(self, size_bytes: int) -> torch.Tensor:
        return torch.full((size_bytes,), 1, dtype=torch.uint8)

    def kv_cache(self, size_bytes: int) -> torch.Tensor:
        self.cache = torch.full((size_bytes,), 2, dtype=torch.uint8)
        return self.cache

    def whole(self, device: torch.Tensor, host: torch.Tensor, direction: Direction) -> float:
        start = time.perf_counter()
        if direction == "to_device":
            device.copy_(host)
        else:
            host.copy_(device)
        return time.perf_counter() - start


class Failing(MemcpyCopier):
    def take_finished(self) -> list[CopyResult]:
        return [CopyResult(each.job_id, each.seconds, OSError("no DMA")) for each in super().take_finished()]


def measure(device: Memory) -> list[dict[str, Any]]:
    return bench_gpu(device, block_bytes=(64 << 10, MIB), kept_bytes=8 * MIB, sample_bytes=2 * MIB, rounds=3)


def test_each_size_and_direction_has_a_row_beside_the_peak() -> None:
    figures = measure(Memory())
    assert [(row["block_kib"], row["direction"]) for row in figures] == [
        (64, "to_device"),
        (64, "from_device"),
        (1024, "to_device"),
        (1024, "from_device"),
    ]
    for row in figures:
        assert min(row["kvtier_gbps"], row["peak_gbps"], row["over_peak"]) > 0
        assert row["pinned"] == "not locked"
    assert ["kernel_gbps" in row for row in figures] == [True, False, False, False]
    assert len(list(rows(figures))) == len(figures)


def test_blocks_really_move_both_ways() -> None:
    device = Memory()
    measure(device)
    assert set(device.cache.unique().tolist()) <= {0, 1, 2}
    assert 0 in device.cache, "nothing of the tier's memory, which begins empty, has come to the device"


def test_a_copy_that_fails_ends_it() -> None:
    device = Memory()
    device.copier = Failing()
    with pytest.raises(ConnectorError, match="a copy to_device failed: no DMA"):
        measure(device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so_in_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(connector, ["--only", "gpu", "--out", str(tmp_path / "gpu.json")])
    assert result.exit_code == 1
    assert result.output.startswith("Error: no GPU: PyTorch")
    assert result.output.count("\n") == 1
    assert not (tmp_path / "gpu.json").exists()
