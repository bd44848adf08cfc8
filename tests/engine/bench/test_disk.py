"""The other sides of the disk benchmark: vLLM's and LMCache's real code stores blocks and loads the same."""

from pathlib import Path

import pytest
from tests.bench.connector.disk.compare import bench_disk

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("side", ["vllm_fs", "lmcache"])
def test_another_side_is_measured_with_right_bytes(side: str, tmp_path: Path) -> None:
    found = bench_disk(
        tmp_path,
        log=tmp_path / "log",
        say=print,
        rounds=2,
        kept_bytes=8 << 20,
        sample_bytes=4 << 20,
        block_bytes=(512 << 10,),
        sides=("kvtier", side),
    )
    assert [figures["op"] for figures in found] == ["load", "store"]
    for figures in found:
        assert figures[f"{side}_gbps"] > 0
        assert figures[f"{side}_cpu_s_per_gib"] > 0
        assert figures[f"over_{side}"]["of_medians"] == pytest.approx(
            figures["kvtier_gbps"] / figures[f"{side}_gbps"]
        )


def test_a_file_of_vllms_that_was_changed_is_seen(tmp_path: Path) -> None:
    from tests.bench.connector.disk.sides import SIDES, Measured, WrongBytesError  # noqa: PLC0415 - takes seconds
    from tests.bench.connector.disk.work import Work  # noqa: PLC0415 - as above

    work = Work(str(tmp_path), 64 << 10, blocks=4, sample_blocks=4)
    side = SIDES["vllm_fs"](work)
    try:
        measured = Measured(side, work)
        (path, *_) = tmp_path.glob("**/*.bin")
        path.write_bytes(bytes(64 << 10))
        with pytest.raises(WrongBytesError):
            measured.sample("load", "16 prompts", seed=0)
    finally:
        side.close()
