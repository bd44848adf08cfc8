"""Two ranks share one region; killing the engine outright leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.engine

SHM = Path("/dev/shm")  # noqa: S108 - it is what must stay as it is
DEADLINE_S = 240


def until(condition: Callable[[], bool], failure: Callable[[], str]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, failure()
        time.sleep(0.1)


def descendants(pid: int) -> set[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        direct = {int(child) for child in children.read_text().split()}
    except OSError:
        return set()
    return direct.union(*(descendants(child) for child in direct))


def alive(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text().replace(")", " ").replace("  ", " ")
    except OSError:
        return False


def regions_of(pids: set[int]) -> set[str]:
    """Return the inodes of the regions that these processes have mapped."""
    found = set()
    for pid in pids:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            if "/memfd:kvtier" in line:
                found.add(line.split()[4])
    return found


def test_two_ranks_and_a_kill(model_folder: Callable[..., Path], tmp_path: Path) -> None:
    names = set(SHM.iterdir())
    result, log = tmp_path / "result.json", tmp_path / "engine.log"
    with log.open("w") as output:
        engine = subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "tests.engine.connector.two_ranks", str(model_folder()), str(result)],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | {"VLLM_LOGGING_LEVEL": "INFO"},
        )
    everyone = {engine.pid}
    try:
        until(lambda: result.exists() or engine.poll() is not None, log.read_text)
        assert engine.poll() is None, log.read_text()
        everyone |= descendants(engine.pid)
        found = json.loads(result.read_text())
        assert [tokens for tokens, _ in found["warm"]] == [tokens for tokens, _ in found["cold"]]
        assert [cached for _, cached in found["warm"]] == [64, 320, 640]
        assert found["loaded_bytes"] == 1024 * 1024  # 32 blocks, 16 KiB on each of two ranks
        assert len(regions_of(everyone)) == 1
        assert log.read_text().count("kvtier: rank") == 2
        assert not [
            name for name in set(SHM.iterdir()) - names if "kvtier" in name.name or "offload" in name.name
        ]

        # The engine core first, as the kernel's OOM killer would: nobody gets to clean up.
        for pid in everyone - {engine.pid}:
            if "EngineCore" in Path(f"/proc/{pid}/comm").read_text() or not descendants(pid):
                continue
            os.kill(pid, signal.SIGKILL)
        engine.kill()
        engine.wait()
        until(lambda: not any(alive(pid) for pid in everyone), lambda: f"still running: {everyone}")
    finally:
        for pid in filter(alive, everyone):
            os.kill(pid, signal.SIGKILL)
    assert not [
        name for name in set(SHM.iterdir()) - names if "kvtier" in name.name or "offload" in name.name
    ]
