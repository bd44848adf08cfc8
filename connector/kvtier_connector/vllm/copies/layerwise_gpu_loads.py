"""Loads to a GPU that are part of the step that needs them: each layer waits on the device for its own part.

vLLM asks for a layer's KV before it computes that layer. The step's stream waits there, not the host, so the
next steps are prepared meanwhile. Which layers ask is seen in the first step that loads: layers with states,
a draft model's, or all of them in one CUDA graph do not, and what they need is there before the step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from vllm.config import CUDAGraphMode
from vllm.forward_context import ForwardContext
from vllm.v1.kv_cache_interface import KVCacheConfig, group_kernel_blocks
from vllm.v1.kv_offload.base import GPULoadStoreSpec

from kvtier_connector.core.copies.copyplan import CopyPlan, Layout, plan_parts
from kvtier_connector.core.copies.load_parts import (
    LayerPlace,
    LoadParts,
    count_parts,
    load_bytes,
    load_parts,
)
from kvtier_connector.core.index.keytable import Slots
from kvtier_connector.errors import DeviceError
from kvtier_connector.vllm.upstream.engine import offloaded_groups


def layer_places(
    kv_caches: Mapping[str, torch.Tensor], config: KVCacheConfig, layout: Layout
) -> dict[str, LayerPlace]:
    """Return where each layer's bytes lie in a block; those that do not lie together are left out.

    Args:
        kv_caches: the layers' caches, as vLLM registers them.
        config: which layers are of which KV cache group.
        layout: the same caches, as the copies need them.
    """
    found = dict[str, LayerPlace]()
    for group, (pages, number) in enumerate(zip(layout.groups, offloaded_groups(config), strict=True)):
        for name in config.kv_cache_groups[number].layer_names:
            cache = kv_caches.get(name)
            if not isinstance(cache, torch.Tensor):
                continue
            block = group_kernel_blocks(cache, config.num_blocks)[0]
            begin, size = cache.data_ptr(), block.numel() * block.element_size()
            reaches = 1 + sum(
                (length - 1) * step for length, step in zip(block.shape, block.stride(), strict=True)
            )
            for page in pages:
                first = begin - page.device_address
                if reaches == block.numel() and first >= 0 and first + size <= page.size_bytes:
                    found[name] = LayerPlace(group, page.slot_offset_bytes + first, size)
    return found


@runtime_checkable
class PartsCopier(Protocol):
    """Copies one load in parts."""

    def start_load(self, job_id: int, parts: Sequence[CopyPlan]) -> None:
        """Queue a load's parts, one after another.

        Raises DeviceError: the device does not take them, in no way.
        """

    def wait_on_device(self, job_id: int, part: int) -> None:
        """Have what is queued for the step from now on begin when a part has been copied."""


class Askers:
    """Which layers ask for their KV, and in which order, by the way in which a step runs them.

    A way that no step has been seen to its end in tells nothing yet.
    """

    def __init__(self) -> None:
        self._seen = dict[CUDAGraphMode, tuple[str, ...]]()
        self._way: CUDAGraphMode | None = None
        self._learning: dict[str, None] | None = None

    def begin_forward(self, context: ForwardContext) -> bool:
        """Expect a step's layers, and tell whether they will ask as they did before."""
        self._way = context.cudagraph_runtime_mode if asks_for_layers(context) else None
        is_known = self._way in self._seen
        self._learning = None if self._way is None or is_known else {}
        return is_known

    def ask(self, layer: str) -> None:
        """Take note that a layer has asked."""
        if self._learning is not None:
            self._learning[layer] = None

    def end_forward(self) -> bool:
        """Tell whether something is known that was not before the step."""
        learnt, self._learning = self._learning, None
        if learnt is None or self._way is None:
            return False
        self._seen[self._way] = tuple(learnt)
        return True

    @property
    def order(self) -> tuple[str, ...]:
        """Layers that ask in every way, in their order."""
        first, *others = self._seen.values() or ((),)
        return tuple(layer for layer in first if all(layer in other for other in others))


def asks_for_layers(context: ForwardContext) -> bool:
    """Tell whether a step asks for each layer's KV before it computes that.

    One CUDA graph does not, and of two halves of a step, each on a stream of its own, only the first would.
    """
    mode = getattr(context, "cudagraph_runtime_mode", CUDAGraphMode.NONE)
    is_halved = getattr(context, "ubatch_slices", None) is not None
    return context.attn_metadata is not None and mode is not CUDAGraphMode.FULL and not is_halved


@dataclass(slots=True)
class _Load:
    """A load that the step has begun."""

    parts: LoadParts
    waited: int = 0  # for how many of its parts the step has waited


class LayerwiseGpuLoads:
    """The loads of the step that is running."""

    def __init__(self, layout: Layout, places: Mapping[str, LayerPlace], copier: PartsCopier) -> None:
        self._layout = layout
        self._places = places
        self._copier = copier
        self._askers = Askers()
        self._numbers = dict[str, int]()
        """Of the layers that ask, in their order."""
        self._cut = dict[int, LoadParts]()
        self._whole = load_parts(layout, [], 1)
        self._loads = dict[int, _Load]()
        self._next = 0
        """Number of the layer that asks next."""

    def start(self, job_id: int, blocks: GPULoadStoreSpec, slots: Slots) -> int:
        """Begin a load; returns its bytes. Raises DeviceError: the device does not take it."""
        asked = blocks.block_ids, slots, blocks.group_sizes, blocks.block_indices
        size_bytes = load_bytes(self._layout, blocks.group_sizes)
        count = count_parts(self._layout, size_bytes) if self._numbers else 1
        parts = self._in_parts(count) if count > 1 else self._whole
        self._copier.start_load(job_id, plan_parts(parts.layouts, *asked))
        self._loads[job_id] = _Load(parts)
        return size_bytes

    def begin_forward(self, context: ForwardContext) -> None:
        """Have the step wait for what it needs before its first layer."""
        is_known = self._askers.begin_forward(context)
        for job_id, load in self._loads.items():
            self._wait(job_id, load, load.parts.before_step if is_known else len(load.parts.layouts))
        self._next = 0

    def ask(self, layer: str) -> None:
        """Have a layer, and what comes after it, wait for its part of the step's loads.

        Raises DeviceError: a layer before it has not asked, so it has computed without what it needs.
        """
        self._askers.ask(layer)
        number = self._numbers.get(layer)
        if number is None:
            return
        for job_id, load in self._loads.items():
            waits = load.parts.waits
            if number >= len(waits):
                continue
            if number > self._next and load.waited < waits[number - 1]:
                self._refuse_gap()
            if load.waited < waits[number]:
                self._wait(job_id, load, waits[number])
        self._next = max(self._next, number + 1)

    def end_forward(self) -> None:
        """Forget the step's loads, for all of which it has waited.

        Raises DeviceError: a layer has not asked for what it needs.
        """
        if any(load.waited < len(load.parts.layouts) for load in self._loads.values()):
            self._refuse_gap()
        self._loads.clear()
        if self._askers.end_forward():
            order = [layer for layer in self._askers.order if layer in self._places]
            self._numbers = {layer: number for number, layer in enumerate(order)}
            self._cut.clear()

    def _refuse_gap(self) -> None:
        missed = [layer for layer, number in self._numbers.items() if number == self._next]
        raise DeviceError(
            f"layer {', '.join(missed)} has computed without waiting for its KV: what comes of it is wrong, "
            "so the engine ends; set layered_loads to false and report this with vLLM's version"
        )

    def _in_parts(self, count: int) -> LoadParts:
        if count not in self._cut:
            self._cut[count] = load_parts(
                self._layout, [self._places[layer] for layer in self._numbers], count
            )
        return self._cut[count]

    def _wait(self, job_id: int, load: _Load, parts: int) -> None:
        if load.waited < parts:
            self._copier.wait_on_device(job_id, parts - 1)
            load.waited = parts
