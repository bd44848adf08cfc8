"""Two ranks share one region; killing the engine outright leaves nothing behind."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.engine.runtime.endings import SHM, Watched

from kvtier_operator.runtime.process.shm import descendants

pytestmark = pytest.mark.engine

DEADLINE_S = 240


def regions_of(pids: set[int]) -> set[str]:
    """Return the inodes of the regions that these processes have mapped."""
    found = set()
    for pid in pids:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            if "/memfd:kvtier" in line:
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


def test_two_ranks_and_a_kill(model_folder: Callable[..., Path], tmp_path: Path) -> None:
    names = set(SHM.iterdir())
    log = tmp_path / "engine.log"
    read_end, write_end = os.pipe()
    with log.open("w") as output:
        engine = subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "tests.engine.connector.two_ranks", str(model_folder()), str(write_end)],
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
        assert found, log.read_text()
        everyone = {engine.pid, *descendants(engine.pid)}
        assert [tokens for tokens, _ in found["warm"]] == [tokens for tokens, _ in found["cold"]]
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
    finally:
        for pid in [*descendants(engine.pid), engine.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        engine.communicate()
    assert left_in_shm(names) == []


def left_in_shm(before: set[Path]) -> list[Path]:
    return [path for path in set(SHM.iterdir()) - before if "kvtier" in path.name or "offload" in path.name]
