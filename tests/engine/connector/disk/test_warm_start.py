"""An engine that starts again has in memory what its disk had in use last, before the first request."""

import shutil
from pathlib import Path

import pytest
from tests.engine.connector.disk_engine import DiskEngine
from tests.engine.connector.prompts import CACHED, metric

pytestmark = [
    pytest.mark.engine,
    pytest.mark.usefixtures("disk_pays"),
    pytest.mark.filterwarnings("ignore"),
]
CHUNKS = sum(CACHED) // 32


def test_prompts_of_before_a_restart_are_answered_from_memory(
    disk_engine: DiskEngine, known: Path, cold: list[list[int]], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(known, tmp_path / "disk"))
    disk_engine.restart(folder, warm_start_s=60.0)
    before = {
        name: metric(disk_engine.llm, f"vllm:kvtier_{name}") for name in ("disk_hit_chunks", "cpu_hit_chunks")
    }
    assert disk_engine.disk.take_counts().load_bytes >= CHUNKS * disk_engine.disk.block_bytes

    assert disk_engine.ask() == (cold, CACHED)
    assert metric(disk_engine.llm, "vllm:kvtier_disk_hit_chunks") == before["disk_hit_chunks"]
    assert metric(disk_engine.llm, "vllm:kvtier_cpu_hit_chunks") - before["cpu_hit_chunks"] == CHUNKS


def test_without_time_for_it_they_come_from_disk(
    disk_engine: DiskEngine, known: Path, cold: list[list[int]], tmp_path: Path
) -> None:
    disk_engine.restart(Path(shutil.copytree(known, tmp_path / "disk")), warm_start_s=0.0)
    hits = metric(disk_engine.llm, "vllm:kvtier_disk_hit_chunks")
    assert disk_engine.ask() == (cold, CACHED)
    assert metric(disk_engine.llm, "vllm:kvtier_disk_hit_chunks") - hits == CHUNKS
