"""The disk benchmark: what its figures are made of, and that bytes which are not right end it."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.bench.connector.disk.compare import Way, bench_disk, row
from tests.bench.connector.disk.fio import Fio
from tests.bench.connector.disk.process import side_process
from tests.bench.connector.disk.sides import SIDES, Measured, WrongBytesError
from tests.bench.connector.disk.work import Op, Sample, Work

from kvtier_connector.errors import ConnectorError

BLOCK = 64 << 10
GB = 10**9


def work(folder: Path) -> Work:
    return Work(str(folder), BLOCK, blocks=6, sample_blocks=4)


class InMemory:
    """A side without a disk; `spoil` changes what its loads bring."""

    variants: tuple[str, ...] = ("only",)

    def __init__(self, spoil: Callable[[list[bytearray]], None] = lambda _memories: None) -> None:
        self._stored: dict[int, bytes] = {}
        self._memories: list[bytearray] = []
        self._spoil = spoil

    def before(self, op: Op, blocks: Sequence[int]) -> list[memoryview]:
        self._memories = [bytearray(BLOCK) for _ in blocks]
        return self.loaded() if op == "store" else []

    def run(self, op: Op, blocks: Sequence[int], _variant: str) -> None:
        if op == "store":
            self._stored |= {
                block: bytes(memory) for block, memory in zip(blocks, self._memories, strict=True)
            }
        else:
            self._memories = [bytearray(self._stored[block]) for block in blocks]
            self._spoil(self._memories)

    def loaded(self) -> list[memoryview]:
        return [memoryview(memory) for memory in self._memories]

    def close(self) -> None:
        """Nothing is held."""


def one_bit(memories: list[bytearray]) -> None:
    memories[-1][BLOCK - 1] ^= 1


def swapped(memories: list[bytearray]) -> None:
    memories[0], memories[1] = memories[1], memories[0]


def nothing(memories: list[bytearray]) -> None:
    memories[:] = [bytearray(BLOCK) for _ in memories]


def test_a_side_that_is_right_is_measured(tmp_path: Path) -> None:
    measured = Measured(InMemory(), work(tmp_path))
    for op in ("store", "load"):
        sample = measured.sample(op, "only", seed=1)
        assert sample.bytes == 4 * BLOCK
        assert sample.seconds > 0


@pytest.mark.parametrize("spoil", [one_bit, swapped, nothing])
def test_a_side_that_loads_other_bytes_is_not_measured(
    spoil: Callable[[list[bytearray]], None], tmp_path: Path
) -> None:
    with pytest.raises(WrongBytesError, match="other bytes than were stored"):
        Measured(InMemory(spoil), work(tmp_path))


@pytest.mark.parametrize("spoil", [swapped, nothing])
def test_samples_are_looked_at_too(spoil: Callable[[list[bytearray]], None], tmp_path: Path) -> None:
    side = InMemory()
    measured = Measured(side, work(tmp_path))
    side._spoil = spoil
    with pytest.raises(WrongBytesError):
        measured.sample("load", "only", seed=1)


def test_kvtier_verifies_what_it_loads(tmp_path: Path) -> None:
    side = SIDES["kvtier"](work(tmp_path))
    try:
        measured = Measured(side, work(tmp_path))
        for variant in side.variants:
            measured.sample("store", variant, seed=1)
            measured.sample("load", variant, seed=2)
        (segment,) = tmp_path.glob("*/blocks-*")
        with segment.open("r+b") as file:
            for slot in range(segment.stat().st_size // BLOCK):
                file.seek(slot * BLOCK + 4097)  # no page's head, at which the benchmark itself looks
                file.write(b"kvtier")
        with pytest.raises(OSError, match="corrupt=1"):
            side.run("load", [3], side.variants[0])
    finally:
        side.close()


def test_a_side_that_dies_says_why(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with (
        side_process("none", work(tmp_path / "files"), log=log, environment={}) as side,
        pytest.raises(ConnectorError, match=r"(?s)side none died.*KeyError: 'none'"),
    ):
        side.ready()


def samples(*gbps: float) -> list[Sample]:
    return [Sample(GB, 1 / speed, cpu_seconds=0.5) for speed in gbps]


def test_a_row_takes_the_fastest_variant_and_compares_round_by_round() -> None:
    ways = {
        "kvtier": [Way("kvtier", "default", samples(1, 2, 6))],
        "fio": [Way("fio", "slow", samples(1, 1, 9)), Way("fio", "fast", samples(2, 1, 4))],
        "lmcache": [],
    }
    found = row(512 << 10, "load", ways)
    assert (found["block_kib"], found["op"]) == (512, "load")
    assert found["kvtier_gbps"] == pytest.approx(2)
    assert found["fio_gbps"] == pytest.approx(2)
    assert found["over_fio"] == pytest.approx({"of_medians": 1.0, "median_of_pairs": 1.5})
    assert found["kvtier_cpu_s_per_gib"] == pytest.approx(0.5 * (1 << 30) / GB)
    assert (found["lmcache_gbps"], found["lmcache_cpu_s_per_gib"], found["over_lmcache"]) == (
        None,
        None,
        None,
    )
    assert found["variants"]["fio"]["slow"]["gbps"] == pytest.approx(1)
    assert found["variants"]["fio"]["slow"]["kvtier_over"]["of_medians"] == pytest.approx(2)


FIO = """#!/bin/sh
echo "$@" >> {log}
echo 'a warning'
cat <<END
{report}
END
"""


def put_fio(folder: Path, **job: Any) -> Path:  # noqa: ANN401 - it is JSON
    log = folder / "fio.log"
    program = folder / "fio"
    program.write_text(FIO.format(log=log, report=json.dumps({"jobs": [job]})))
    program.chmod(0o700)
    return log


def test_the_report_has_a_row_for_each_size_and_direction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = {"io_bytes": 3 * GB, "runtime": 1500}
    log = put_fio(tmp_path, read=moved, write=moved, usr_cpu=10.0, sys_cpu=20.0, job_runtime=3000)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    disk = tmp_path / "disk"
    disk.mkdir()
    said: list[str] = []
    found = bench_disk(
        disk,
        log=tmp_path / "sides.log",
        say=said.append,
        rounds=2,
        kept_bytes=8 * BLOCK,
        sample_bytes=4 * BLOCK,
        block_bytes=(BLOCK, 2 * BLOCK),
        sides=("kvtier", "fio"),
    )
    assert [(figures["block_kib"], figures["op"]) for figures in found] == [
        (64, "load"),
        (64, "store"),
        (128, "load"),
        (128, "store"),
    ]
    for figures in found:
        assert figures["kvtier_gbps"] > 0
        assert figures["fio_gbps"] == figures["fio_all_memory_gbps"] == pytest.approx(2)
        assert figures["fio_cpu_s_per_gib"] == pytest.approx(0.9 / 3 * (1 << 30) / GB)
        assert figures["over_fio"]["of_medians"] == pytest.approx(figures["kvtier_gbps"] / 2)
    assert len(said) == 6 + bool(found[0]["missing"])
    assert list(disk.iterdir()) == []
    calls = log.read_text().splitlines()
    assert all("--direct=1" in call for call in calls)
    assert any("--rw=randread --bs=65536 --io_size=262144 --numjobs=1" in call for call in calls)
    assert any("--rw=randwrite --bs=131072 --io_size=131072 --numjobs=2" in call for call in calls)
    assert any("--bs=65536" in call and "--iodepth=4 " in call for call in calls)  # a sample's four blocks


def test_without_fio_its_figures_are_null_and_the_user_is_told_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said: list[str] = []
    found = bench_disk(
        tmp_path,
        log=tmp_path / "sides.log",
        say=said.append,
        rounds=1,
        kept_bytes=2 * BLOCK,
        sample_bytes=2 * BLOCK,
        block_bytes=(BLOCK,),
        sides=("kvtier", "fio"),
    )
    assert [figures["fio_gbps"] for figures in found] == [None, None]
    assert "fio is not installed, so its figures are left out; apt-get install fio" in said


def test_fio_that_fails_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "fio"
    program.write_text("#!/bin/sh\necho 'fio: no such engine' >&2\nexit 1\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(ConnectorError, match="fio failed: fio: no such engine"):
        bench_disk(tmp_path, log=tmp_path / "sides.log", say=print, block_bytes=(BLOCK,), sides=("fio",))


@pytest.mark.parametrize("huge", [True, False])
def test_fio_has_huge_pages_where_they_can_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, huge: bool
) -> None:
    moved = {"io_bytes": GB, "runtime": 1000}
    put_fio(tmp_path, read=moved, write=moved, usr_cpu=1.0, sys_cpu=1.0, job_runtime=1000)
    program = tmp_path / "fio"
    if not huge:
        refusal = '#!/bin/sh\ncase "$*" in *shmhuge*) echo "fio: pid=0, err=12" >&2; exit 1; esac\n'
        program.write_text(program.read_text().replace("#!/bin/sh\n", refusal, 1))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    fio = Fio(Work(str(tmp_path / "files"), BLOCK, blocks=2, sample_blocks=2))
    assert ("io_uring, huge pages" in fio.variants, "psync, huge pages" in fio.variants) == (huge, huge)
    assert "psync" in fio.variants
