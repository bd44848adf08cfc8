"""Loads of blocks that are still being read from disk, part by part."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from vllm.v1.kv_offload.base import GPULoadStoreSpec

from kvtier_connector.core.arrivals import WHOLE, Arrivals, Tickets
from kvtier_connector.core.copyplan import plan_copies
from kvtier_connector.core.keytable import Slots
from kvtier_connector.core.layer_parts import LayerPart
from kvtier_connector.vllm.copier_memcpy import MemcpyCopier, Stage

_MARGIN_S: Final = 5.0
"""The disk's own thread says when a block has taken too long; only if that hangs, too, nothing is said."""


class LayerLoads:
    """Copies what comes to the device, one part of the layers after another.

    Args:
        parts: of a block; two at least.
        copier: the worker's.
        arrivals: where it is told what has come.
        timeout_s: how long the disk may have one block.
    """

    def __init__(
        self, parts: Sequence[LayerPart], copier: MemcpyCopier, arrivals: Arrivals, timeout_s: float
    ) -> None:
        self._parts = parts
        self._last_layers = [part.last_layer for part in parts]
        self._copier = copier
        self._arrivals = arrivals
        self._timeout_s = timeout_s + _MARGIN_S

    def start(self, job_id: int, blocks: GPULoadStoreSpec, slots: Slots, tickets: Tickets) -> int:
        """Begin a load; returns its bytes.

        Args:
            job_id: the load's.
            blocks: the device's.
            slots: the region's.
            tickets: of the reads into them.
        """
        stages = [
            self._stage(part, count, blocks, slots, tickets) for count, part in enumerate(self._parts, 1)
        ]
        self._copier.start_stages(job_id, stages)
        return sum(stage.plan.total_bytes for stage in stages)

    def wait(self, job_id: int, layer: int) -> None:
        """Return when a layer, counted from 0, can be computed with, or the load has failed."""
        self._copier.wait_stage(job_id, bisect_left(self._last_layers, layer))

    def is_last(self, layer: int) -> bool:
        """Tell whether a load has ended when this layer can be computed with."""
        return layer > self._last_layers[-2]

    def _stage(
        self, part: LayerPart, count: int, blocks: GPULoadStoreSpec, slots: Slots, tickets: Tickets
    ) -> Stage:
        plan = plan_copies(part.layout, blocks.block_ids, slots, blocks.group_sizes, blocks.block_indices)
        least = WHOLE if count == len(self._parts) else count
        return Stage(plan, lambda: self._arrivals.wait(slots, tickets, least, self._timeout_s))
