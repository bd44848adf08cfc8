"""fio, the disk's measure: whole blocks in random order, past the page cache, and nothing done to them."""

import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from tests.bench.connector.disk.work import Op, Sample, Work

from kvtier_connector.bench.region import PAGE_BYTES
from kvtier_connector.errors import ConnectorError

DEPTH: Final = 32
_ASYNC: Final = ("--ioengine=io_uring", f"--iodepth={DEPTH}")
_HUGE: Final = "--mem=shmhuge"
_Setting = tuple[int, tuple[str, ...]]
_SETTINGS: Final[dict[str, _Setting]] = {
    "io_uring": (1, _ASYNC),
    "io_uring, fixed buffers": (1, (*_ASYNC, "--fixedbufs", "--registerfiles")),
    "io_uring, 2 jobs": (2, ("--ioengine=io_uring", f"--iodepth={DEPTH // 2}")),
    "psync": (DEPTH, ("--ioengine=psync",)),
    "io_uring, huge pages": (1, (*_ASYNC, _HUGE)),
    "psync, huge pages": (DEPTH, ("--ioengine=psync", _HUGE)),
}
"""Number of jobs, and options. Which is the fastest depends on the disk and the kernel. The queue of a
virtual disk has an entry for each piece of memory: huge pages are two to three times as fast there."""
ALL_MEMORY: Final = "io_uring, huge pages, a buffer for each block"
"""The others use the same few MiB again and again. A tier fills memory that nobody has just used, and into
that a virtual machine's disk, which copies, is slower."""
_BATCH: Final = 32
HUGEPAGES_BYTES: Final = 4 * DEPTH * PAGE_BYTES
"""That fio takes of the pool: a buffer of one block takes up to four pages. `ALL_MEMORY` takes a sample's
bytes more."""
_LEAST_S: Final = 0.05
_ENOUGH_S: Final = 0.3
"""fio tells time in milliseconds, and its jobs do not all begin in the same one: what takes less than the
first, on a device that is memory, is repeated until it takes about the second."""


class FioMissingError(ConnectorError):
    """fio is not installed."""


class Fio:
    """Takes samples with fio, one process each, on one file of the work's size.

    fio's own account of time and CPU is taken, which leaves out its start: the CPU of its threads, not of the
    kernel's for them. Nothing runs between samples, and its file goes with the work's folder.

    Args:
        work: whose bytes, sizes and numbers of blocks it takes.
        all_memory: also measure `ALL_MEMORY`, which is no way to the best figure.
    """

    name = "fio"

    def __init__(self, work: Work, *, all_memory: bool = False) -> None:
        program = shutil.which("fio")
        if program is None:
            raise FioMissingError("fio is not installed, so its figures are left out; apt-get install fio")
        self._program = program
        self._work = work
        folder = Path(work.folder)
        folder.mkdir(parents=True)
        self._file = folder / "fio"
        self._run("--rw=write", "--bs=1M", "--ioengine=psync")
        self._settings = _SETTINGS | ({ALL_MEMORY: _all_memory(work)} if all_memory else {})
        self.variants = tuple(name for name in self._settings if self._runs(name))
        self._passes = 1
        seconds = min(self.sample("load", self.variants[0], seed).seconds for seed in range(3))
        if seconds < _LEAST_S:
            self._passes = math.ceil(_ENOUGH_S / max(seconds, 1e-3))

    def ready(self) -> None:
        """Nothing is left to wait for."""

    def sample(self, op: Op, variant: str, seed: int) -> Sample:
        """Take one sample."""
        jobs, options = self._settings[variant]
        direction = "read" if op == "load" else "write"
        report = self._run(
            f"--rw=rand{direction}",
            f"--bs={self._work.block_bytes}",
            f"--io_size={max(1, self._work.sample_blocks // jobs) * self._work.block_bytes * self._passes}",
            f"--numjobs={jobs}",
            f"--randseed={seed}",
            *options,
        )
        (job,) = report["jobs"]
        cpu_percent = job["usr_cpu"] + job["sys_cpu"]
        return Sample(
            bytes=job[direction]["io_bytes"],
            seconds=job[direction]["runtime"] / 1e3,
            cpu_seconds=cpu_percent / 100 * job["job_runtime"] / 1e3,
        )

    def _runs(self, variant: str) -> bool:
        """Tell whether fio can do it here: huge pages are not always to be had."""
        jobs, options = self._settings[variant]
        if _HUGE not in options:
            return True
        try:
            self._run(
                "--rw=randread",
                f"--bs={self._work.block_bytes}",
                f"--io_size={self._work.block_bytes}",
                f"--numjobs={jobs}",
                *options,
            )
        except ConnectorError:
            return False
        return True

    def _run(self, *options: str) -> dict[str, Any]:
        command = [
            self._program,
            "--name=kvtier",
            f"--filename={self._file}",
            f"--size={self._work.blocks * self._work.block_bytes}",
            "--direct=1",
            "--thread",
            "--group_reporting",
            "--scramble_buffers=0",
            "--output-format=json",
            *options,
        ]
        result = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - a list
        if result.returncode:
            raise ConnectorError(f"fio failed: {(result.stderr or result.stdout).strip()[:400]}")
        report: dict[str, Any] = json.loads(result.stdout[result.stdout.index("{") :])
        return report


def _all_memory(work: Work) -> _Setting:
    depth = f"--iodepth={work.sample_blocks}"
    return 1, ("--ioengine=io_uring", depth, f"--iodepth_batch_submit={_BATCH}", _HUGE)
