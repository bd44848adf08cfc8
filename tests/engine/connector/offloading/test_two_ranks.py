"""Two ranks share one region; killing the engine outright leaves nothing behind."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.engine.connector.secondary.tiering import ENGINE_OF_A_TEST
from tests.engine.runtime.endings import SHM, Watched

from kvtier_operator.runtime.guard import ShmLedger, descendants

pytestmark = pytest.mark.engine

DEADLINE_S = 900


def regions_of(pids: set[int]) -> set[str]:
    """Return the inodes of the regions that these processes have mapped."""
    found = set()
    for pid in pids:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            if "/memfd:kvtier (deleted)" in line:
                found.add(line.split()[4])
    return found


def result_of(engine: "subprocess.Popen[str]", pipe: int) -> Any:  # noqa: ANN401 - JSON
    """What the program found; None if it ended without finding anything."""
    ended = os.pidfd_open(engine.pid)
    try:
        ready, _, _ = select.select([pipe, ended], [], [], DEADLINE_S)
    finally:
        os.close(ended)
    with os.fdopen(pipe) as result:
        line = result.readline() if pipe in ready else ""
    return json.loads(line) if line else None


@pytest.fixture
def ledger() -> Iterator[ShmLedger]:
    """What vLLM's own queues are named in /dev/shm: a kill leaves them there, so they go after the test."""
    seen = ShmLedger()
    yield seen
    seen.remove()


@contextmanager
def two_ranks(
    model: Path, disk: Path, log: Path, ledger: ShmLedger
) -> Iterator[tuple["subprocess.Popen[str]", Any]]:
    """Run the program until it has found something; whatever is left of it afterwards is killed."""
    read_end, write_end = os.pipe()
    with log.open("w") as output:
        engine = subprocess.Popen(  # noqa: S603 - our own interpreter
            [
                sys.executable,
                "-m",
                "tests.engine.connector.offloading.two_ranks",
                model,
                disk,
                str(write_end),
            ],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | {"VLLM_LOGGING_LEVEL": "INFO"},
            pass_fds=[write_end],
            text=True,
        )
    os.close(write_end)
    try:
        found = result_of(engine, read_end)
        ledger.record([engine.pid, *descendants(engine.pid)])
        assert found, log.read_text()
        yield engine, found
    finally:
        for pid in [*descendants(engine.pid), engine.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        engine.communicate()


def tokens(answers: list[tuple[list[int], int]]) -> list[list[int]]:
    return [tokens for tokens, _ in answers]


def killed(model: Path, disk: Path, log: Path, ledger: ShmLedger) -> list[list[int]]:
    """What an engine answered that was killed after the same prompts from its tier."""
    names = set(SHM.iterdir())
    with two_ranks(model, disk, log, ledger) as (engine, found):
        everyone = {engine.pid, *descendants(engine.pid)}
        cold = tokens(found["first"])
        assert tokens(found["warm"]) == cold
        assert [cached for _, cached in found["first"]] == [0, 0, 0]
        assert [cached for _, cached in found["warm"]] == [64, 320, 640]
        assert found["loaded_bytes"] == 1024 * 1024  # 32 blocks, 16 KiB on each of two ranks
        assert len(regions_of(everyone)) == 1
        assert log.read_text().count("kvtier: rank") == 2
        assert left_in_shm(names) == []

        # The engine core first, as the kernel's OOM killer would: nobody gets to clean up.
        with Watched(everyone) as watched:
            for pid in everyone - {engine.pid}:
                if "EngineCore" in Path(f"/proc/{pid}/comm").read_text() or not descendants(pid):
                    continue
                os.kill(pid, signal.SIGKILL)
            engine.kill()
            assert watched.alive_after(DEADLINE_S) == {}
    assert left_in_shm(names) == []
    return cold


def test_two_ranks_and_a_kill(model_folder: Callable[..., Path], tmp_path: Path, ledger: ShmLedger) -> None:
    killed(model_folder(), tmp_path / "disk", tmp_path / "engine.log", ledger)


@pytest.mark.long  # four processes import vLLM, and again
def test_two_ranks_start_again_after_a_kill(
    model_folder: Callable[..., Path], tmp_path: Path, ledger: ShmLedger
) -> None:
    names = set(SHM.iterdir())
    model, disk, log = model_folder(), tmp_path / "disk", tmp_path / "engine.log"
    cold = killed(model, disk, log, ledger)
    with two_ranks(model, disk, log, ledger) as (_, found):
        assert tokens(found["first"]) == tokens(found["warm"]) == cold
        # The last prompt's end may have been on its way to the disk.
        assert [cached for _, cached in found["first"]][:2] == [64, 320]
        assert found["first"][2][1] > 320
        assert found["disk_bytes"] >= (64 + 320 + 320) // 32 * 32 * 1024
    assert left_in_shm(names) == []


def left_in_shm(before: set[Path]) -> list[Path]:
    """Return what a tier left since; other tests' engines with vLLM's own tier come and go meanwhile."""
    since = [path for path in set(SHM.iterdir()) - before if ENGINE_OF_A_TEST not in path.name]
    return [path for path in since if "kvtier" in path.name or "offload" in path.name]
