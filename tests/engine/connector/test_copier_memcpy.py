"""The memcpy copier on its own: every byte arrives, from threads that may use every core."""

import os
import threading
from collections.abc import Callable

import numpy as np
import pytest

from kvtier_connector.core.copyplan import CopyPlan, Run
from kvtier_connector.vllm.copier_memcpy import _PIECE_BYTES, MemcpyCopier, Stage

PAGE = 1 << 20
PAGES = 3 * _PIECE_BYTES // PAGE + 1


def plan(device: np.ndarray, region: np.ndarray) -> CopyPlan:
    """The region holds a page in every other place, so that pages do not join."""
    return CopyPlan((Run(device.ctypes.data, PAGE, region.ctypes.data, 2 * PAGE, PAGE, PAGES),))


def test_a_job_of_several_pieces_moves_every_byte_both_ways() -> None:
    device = np.random.default_rng(0).integers(0, 256, PAGES * PAGE, np.uint8)
    region = np.zeros(2 * PAGES * PAGE, np.uint8)
    wanted = device.copy()
    copier = MemcpyCopier()
    copier.start(1, plan(device, region), to_device=False)
    copier.wait([1])
    assert [(outcome.job_id, outcome.error) for outcome in copier.finished()] == [(1, None)]
    np.testing.assert_array_equal(region.reshape(PAGES, 2, PAGE)[:, 0].reshape(-1), wanted)
    assert not region.reshape(PAGES, 2, PAGE)[:, 1].any()
    device[:] = 0
    copier.start(2, plan(device, region), to_device=True)
    copier.wait([2])
    np.testing.assert_array_equal(device, wanted)
    copier.close()


def test_copies_are_not_kept_to_the_core_of_the_thread_that_asks() -> None:
    """vLLM binds the worker's own thread to one core; the others belong to its other threads."""
    every = os.sched_getaffinity(0)
    copier, seen = MemcpyCopier(), list[set[int]]()

    def ask() -> None:
        os.sched_setaffinity(0, {min(every)})
        seen.append(copier._pool.submit(os.sched_getaffinity, 0).result())

    asking = threading.Thread(target=ask)
    asking.start()
    asking.join()
    copier.close()
    assert seen == [every]


ONES = np.ones(PAGE, np.uint8)


def two_stages(first: Callable[[], None], second: Callable[[], None]) -> tuple[list[Stage], np.ndarray]:
    """Copies from a region of ones, in two halves, to a device of zeros, which is returned, too."""
    device, region = np.zeros(PAGE, np.uint8), ONES
    half = PAGE // 2
    plans = (
        CopyPlan((Run(device.ctypes.data + at, half, region.ctypes.data + at, half, half, 1),))
        for at in (0, half)
    )
    return [Stage(each, ready) for each, ready in zip(plans, (first, second), strict=True)], device


def test_a_stage_is_copied_when_it_is_ready() -> None:
    copier = MemcpyCopier()
    gates = threading.Event(), threading.Event()
    stages, device = two_stages(*(gate.wait for gate in gates))  # type: ignore[arg-type] # its result is not asked for
    copier.start_stages(1, stages)
    assert not device.any()
    gates[0].set()
    copier.wait_stage(1, 0)
    assert device.tolist() == [1] * (PAGE // 2) + [0] * (PAGE // 2)
    assert copier.finished() == []
    gates[1].set()
    copier.wait([1])
    assert [(outcome.job_id, outcome.error) for outcome in copier.finished()] == [(1, None)]
    assert device.all()
    copier.wait_stage(1, 1)  # nothing to wait for
    copier.close()


@pytest.mark.parametrize("which", [0, 1])
def test_a_stage_that_does_not_become_ready_is_the_jobs_failure(which: int) -> None:
    def never() -> None:
        raise OSError("the test's fault")

    copier = MemcpyCopier()
    stages, device = two_stages(*(never if which == stage else lambda: None for stage in range(2)))
    copier.start_stages(1, stages)
    copier.wait_stage(1, 0)
    copier.wait([1])
    (outcome,) = copier.finished()
    assert str(outcome.error) == "the test's fault"
    assert device[: PAGE // 2].all() == (which == 1)
    assert not device[PAGE // 2 :].any()
    copier.close()


def test_stages_are_copied_though_the_other_thread_is_busy() -> None:
    copier, busy = MemcpyCopier(), threading.Event()
    copier._pool.submit(busy.wait)
    stages, device = two_stages(lambda: None, lambda: None)
    copier.start_stages(1, stages)
    copier.wait([1])
    assert device.all()
    busy.set()
    copier.close()
