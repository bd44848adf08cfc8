"""Engines whose device is as late as a GPU may be, and that schedule steps ahead as on one."""

from collections.abc import Iterator

import pytest
from tests.engine.connector.copies.late_device import LateDevice, put_in_engines


@pytest.fixture(scope="module")
def device() -> Iterator[LateDevice]:
    """Have engines take the device's memory for a GPU's."""
    with pytest.MonkeyPatch.context() as patch:
        yield put_in_engines(patch)


@pytest.fixture
def parts_waited(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The parts that steps have waited for, each when only those before it were there."""
    from kvtier_connector.vllm.copies.copier_cuda import CudaCopier  # noqa: PLC0415 - imports vLLM

    seen, wait = list[int](), CudaCopier.wait_on_device

    def watched(copier: CudaCopier, job_id: int, part: int) -> None:
        seen.append(part)
        (job,) = (job for job in copier._jobs[True] if job.job_id == job_id)
        there = [event.has_happened for event in job.parts]
        assert not any(there[part:]), "a layer has waited for more than its own part"
        wait(copier, job_id, part)

    monkeypatch.setattr(CudaCopier, "wait_on_device", watched)
    return seen
