"""The memcpy copier on its own: every byte arrives, from threads that may use every core."""

import os
import threading

import numpy as np

from kvtier_connector.core.copies.copyplan import CopyPlan, Layout, Page, plan_copies
from kvtier_connector.vllm.copies.copier import _PIECE_BYTES, MemcpyCopier

PAGE = 1 << 20
PAGES = 3 * _PIECE_BYTES // PAGE + 1


def plan(device: np.ndarray, region: np.ndarray) -> CopyPlan:
    """The region holds a page in every other place, so that pages do not join."""
    layout = Layout(((Page(device.ctypes.data, PAGE, 0, PAGE),),), 1, 2 * PAGE, region.ctypes.data)
    pages = np.arange(PAGES, dtype=np.int32)
    return plan_copies(layout, pages, pages, [PAGES], [0])


def test_a_job_of_several_pieces_moves_every_byte_both_ways() -> None:
    device = np.random.default_rng(0).integers(0, 256, PAGES * PAGE, np.uint8)
    region = np.zeros(2 * PAGES * PAGE, np.uint8)
    wanted = device.copy()
    copier = MemcpyCopier()
    copier.start(1, plan(device, region), to_device=False)
    copier.wait([1])
    assert [(outcome.job_id, outcome.error) for outcome in copier.take_finished()] == [(1, None)]
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
