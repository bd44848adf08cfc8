"""kvtier's connector over a device that is as late as it may be, for engines with processes of their own.

vLLM imports it by name, in the scheduler's process and in each worker's.
"""

import os
from pathlib import Path

import pytest
from tests.engine.connector.copies.late_device import WAITS_FOLDER, put_in_engines

from kvtier_connector.vllm.connector import KVTierConnector
from kvtier_connector.vllm.copies.copier_cuda import CudaCopier

__all__ = ["KVTierConnector"]


def _write_waits() -> None:
    """Write a line into a file of this process for every part that a step waits for."""
    wait = CudaCopier.wait_on_device

    def watched(copier: CudaCopier, job_id: int, part: int) -> None:
        with (Path(os.environ[WAITS_FOLDER]) / str(os.getpid())).open("a") as parts:
            parts.write(f"{part}\n")
        wait(copier, job_id, part)

    _patch.setattr(CudaCopier, "wait_on_device", watched)


def undo() -> None:
    """Have the process be as it was."""
    _patch.undo()


_patch = pytest.MonkeyPatch()
put_in_engines(_patch)
_write_waits()
