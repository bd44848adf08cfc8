"""The guard, against programs as unruly as vLLM: children in their own sessions, shared memory left."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.engine.runtime.endings import SHM, TIMEOUT_S, Announcement, Watched, present, waits
from tests.shared.waiting import eventually

from kvtier_operator.runtime.guard import descendants
from kvtier_operator.runtime.process import Command, SupervisedProcess

# Makes shared memory and a child in a session of its own, as vLLM's engine core is after its parent died.
UNRULY = """
import mmap, os, signal, subprocess, sys, tempfile
descriptor, path = tempfile.mkstemp(dir="/dev/shm")
os.truncate(descriptor, 4096)
memory = mmap.mmap(descriptor, 4096)
os.close(descriptor)
os.link(path, path := path + "-linked")  # as sem_open does: mapped under a name that is gone
os.unlink(path.removesuffix("-linked"))
if {deaf}:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import signal; print(flush=True); signal.pause()"],
    start_new_session=True, stdout=subprocess.PIPE)
child.stdout.readline()
with open(sys.argv[1], "w") as announcement:
    print(path, file=announcement)
signal.pause()
"""
# The owner of a guarded program, for tests that kill the owner.
OWNER = """
import asyncio, sys
from pathlib import Path
from kvtier_operator.runtime.process import Command, SupervisedProcess
async def main():
    async with SupervisedProcess(Command("unruly", tuple(sys.argv[2:]), grace_s=1.0), Path(sys.argv[1])):
        print("started", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


def remove(path: Path) -> None:
    """Remove a file that must be there."""
    path.unlink()


@pytest.fixture
def ready(tmp_path: Path) -> Iterator[Announcement]:
    """Where an unruly program says that it is ready, and under which name its shared memory lies."""
    with Announcement(tmp_path) as announcement:
        yield announcement


def unruly(ready: Announcement, *, deaf: bool = False) -> tuple[str, ...]:
    return sys.executable, "-c", UNRULY.format(deaf=deaf), str(ready.path)


async def test_sockets_have_a_folder_that_ends_with_the_program(tmp_path: Path) -> None:
    """vLLM leaves its sockets where this variable says."""
    log = tmp_path / "log"
    program = (
        "import os, sys; path = os.environ['VLLM_RPC_BASE_PATH']; open(path + '/left', 'w'); print(path)"
    )
    command = Command("talker", (sys.executable, "-c", program), not_inherited=("VLLM_",))
    async with SupervisedProcess(command, log) as process:
        await process.wait()
    folder = Path(process.log().strip())
    assert folder.is_absolute()
    assert not present(folder)


@pytest.mark.parametrize("deaf", [False, True])
async def test_stop_ends_everything_and_removes_its_shared_memory(
    tmp_path: Path, ready: Announcement, deaf: bool
) -> None:
    log = tmp_path / "log"
    async with SupervisedProcess(Command("unruly", unruly(ready, deaf=deaf), grace_s=0.5), log) as process:
        path = Path(await ready.line())
        assert present(path)
        watched = Watched(descendants(process.guard_pid))
        assert len(watched) == 2
    with watched:
        assert watched.alive_after(0) == {}
    assert process.returncode == 128 + (signal.SIGKILL if deaf else signal.SIGTERM)
    assert not present(path)


async def test_a_program_that_dies_takes_its_children_and_shared_memory_along(
    tmp_path: Path, ready: Announcement
) -> None:
    log = tmp_path / "log"
    async with SupervisedProcess(Command("unruly", unruly(ready)), log) as process:
        path = Path(await ready.line())
        program, _ = descendants(process.guard_pid)
        await asyncio.to_thread(
            eventually, partial(waits, process.guard_pid), "the guard to have looked", TIMEOUT_S
        )
        os.kill(program, signal.SIGKILL)
        assert await asyncio.wait_for(process.wait(), TIMEOUT_S) == 128 + signal.SIGKILL
        assert not present(path)


def test_nothing_outlives_an_owner_that_was_killed(tmp_path: Path, ready: Announcement) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", OWNER, str(log), *unruly(ready, deaf=True)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as owner:  # noqa: S603 - our own
        path = Path(ready.wait())
        with Watched(descendants(owner.pid)) as watched:
            assert len(watched) == 3
            owner.kill()
            assert watched.alive_after(TIMEOUT_S) == {}
    assert not present(path)


async def test_a_killed_guard_takes_the_program_along(tmp_path: Path, ready: Announcement) -> None:
    log = tmp_path / "log"
    here = {"TMPDIR": str(tmp_path)}  # a killed guard removes nothing
    async with SupervisedProcess(Command("unruly", unruly(ready), here), log) as process:
        path = Path(await ready.line())
        program, child = descendants(process.guard_pid)
        with Watched([program]) as watched:
            os.kill(process.guard_pid, signal.SIGKILL)
            assert watched.alive_after(TIMEOUT_S) == {}
        os.kill(child, signal.SIGKILL)
        remove(path)


async def test_the_shared_memory_of_others_stays(tmp_path: Path, ready: Announcement) -> None:
    log = tmp_path / "log"
    async with SupervisedProcess(Command("unruly", unruly(ready)), log):
        await ready.line()
        with tempfile.NamedTemporaryFile(dir=SHM, delete=False) as theirs:
            pass
    remove(Path(theirs.name))


async def test_the_exit_status_is_the_programs(tmp_path: Path) -> None:
    command = Command("quick", (sys.executable, "-c", "print('hello'); raise SystemExit(7)"))
    async with SupervisedProcess(command, tmp_path / "log") as process:
        assert await process.wait() == 7
        assert process.log() == "hello\n"


async def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    async with SupervisedProcess(Command("missing", ("/no/such/program",)), tmp_path / "log") as process:
        assert await process.wait() == 127
        assert "/no/such/program" in process.log()
        assert "Traceback" not in process.log()
