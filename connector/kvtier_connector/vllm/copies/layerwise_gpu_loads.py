"""Loads to a GPU beside the step that needs them: each layer waits on the device for its own part.

Nothing waits on the host: copies and step are queued, and the device's streams wait for each other. Off
unless `layered_loads` is set, since vLLM's async scheduling has to be off for it.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import torch
from vllm.v1.kv_cache_interface import KVCacheConfig
from vllm.v1.kv_offload.base import GPULoadStoreSpec

from kvtier_connector.core.copies.copyplan import CopyPlan, plan_copies
from kvtier_connector.core.copies.layer_parts import CopyPart, LayerPlace
from kvtier_connector.core.index.keytable import Slots


def layer_places(
    kv_caches: Mapping[str, torch.Tensor], kv_cache_config: KVCacheConfig
) -> tuple[LayerPlace, ...]:
    """Return the layers of an engine's only KV cache group, in order; none where it has several."""
    if len(kv_cache_config.kv_cache_groups) != 1:
        return ()
    (group,) = kv_cache_config.kv_cache_groups
    page_bytes: int = group.kv_cache_spec.page_size_bytes
    caches = [kv_caches[name] for name in group.layer_names]
    return tuple(LayerPlace(cache.storage_offset() * cache.element_size(), page_bytes) for cache in caches)


@runtime_checkable
class PartsCopier(Protocol):
    """Copies one load in parts."""

    def start_load(self, job_id: int, plans: Sequence[CopyPlan]) -> None:
        """Queue a load's parts, one after another."""

    def wait_on_device(self, job_id: int, part: int) -> None:
        """Have what is queued for the step from now on begin when a part has been copied."""


class LayerwiseGpuLoads:
    """The loads of the step that is running."""

    def __init__(self, parts: Sequence[CopyPart], copier: PartsCopier) -> None:
        self._parts = parts
        self._last_layers = [part.last_layer for part in parts]
        self._copier = copier
        self._waited_parts = dict[int, int]()
        """For each load, how many of its parts the step has waited for."""

    def start(self, job_id: int, blocks: GPULoadStoreSpec, slots: Slots) -> int:
        """Begin a load; returns its bytes."""
        asked = blocks.block_ids, slots, blocks.group_sizes, blocks.block_indices
        plans = [plan_copies(part.layout, *asked) for part in self._parts]
        self._copier.start_load(job_id, plans)
        self._waited_parts[job_id] = 0
        return sum(plan.total_bytes for plan in plans)

    def running(self, job_ids: Iterable[int]) -> list[int]:
        """Return those of some loads that were begun here."""
        return [job_id for job_id in job_ids if job_id in self._waited_parts]

    def wait_for_layer(self, job_id: int, layer: int) -> None:
        """Have a layer, counted from 0, and what comes after it wait for its part."""
        wanted = min(bisect_left(self._last_layers, layer) + 1, len(self._parts))
        if self._waited_parts.get(job_id, wanted) < wanted:
            self._copier.wait_on_device(job_id, wanted - 1)
            self._waited_parts[job_id] = wanted

    def end(self, job_ids: Collection[int]) -> set[int]:
        """Forget loads; returns those of which a step has not waited for all parts."""
        ended = self._waited_parts.keys() & set(job_ids)
        return {job_id for job_id in ended if self._waited_parts.pop(job_id) < len(self._parts)}
