"""Puts the tier together from vLLM's configuration: a manager for the scheduler, a worker for each rank."""

import os
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from typing_extensions import override
from vllm.platforms import current_platform
from vllm.v1.kv_offload.base import (
    CanonicalKVCaches,
    OffloadingManager,
    OffloadingMetricMetadata,
    OffloadingSpec,
    OffloadingWorker,
)
from vllm.v1.kv_offload.config import OffloadingConfig

from kvtier_connector.config import Policy, parse_extra_config
from kvtier_connector.core.copies import arrivals
from kvtier_connector.core.copies.copyplan import Layout
from kvtier_connector.core.copies.layer_parts import layer_parts
from kvtier_connector.core.index.hints import Sharing
from kvtier_connector.core.index.slots import tier_geometry
from kvtier_connector.core.machine import numa
from kvtier_connector.core.machine.memory import format_bytes, tightest_bound
from kvtier_connector.core.region import pin, region
from kvtier_connector.core.region.growth import Grown, Growth, GrowthWords
from kvtier_connector.core.region.pace import Pace, Steps
from kvtier_connector.core.region.pages import SMALL_PAGE_BYTES, Piece, pieces_of, pieces_within
from kvtier_connector.core.region.region import RegionOffer
from kvtier_connector.errors import ConnectorError, RegionError, UnsupportedEngineError
from kvtier_connector.vllm.copies.copier import Copier, MemcpyCopier
from kvtier_connector.vllm.copies.layerwise_disk_loads import LayerwiseDiskLoads
from kvtier_connector.vllm.copies.layerwise_gpu_loads import LayerwiseGpuLoads, PartsCopier
from kvtier_connector.vllm.metrics import cpu_tier, disk_tier, hints, remote_tier
from kvtier_connector.vllm.metrics.cpu_tier import LABELS, TierFacts
from kvtier_connector.vllm.offloading.manager import KVTierManager
from kvtier_connector.vllm.offloading.worker import KVTierWorker, canonical_layout
from kvtier_connector.vllm.upstream.compat import log
from kvtier_connector.vllm.upstream.engine import GroupCoordinator, engine_ranks

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvtier_connector.core.copies.load_parts import LayerPlace


class KVTierOffloadingSpec(OffloadingSpec):  # type: ignore[misc] # vLLM has no types
    """vLLM's way into this package; made once in the scheduler's process and once in every worker's."""

    def __init__(self, config: OffloadingConfig) -> None:
        super().__init__(config)
        self.settings = parse_extra_config(config.extra_config)
        if config.parallel.pp_size > 1:
            raise UnsupportedEngineError("kvtier's connector does not support pipeline parallelism (PP > 1)")
        if config.worker_kv_bytes_per_block <= 0:
            raise UnsupportedEngineError("this engine has no KV cache blocks that could be kept in a tier")
        self.replicated_layout = config.replicated_layout
        # What is insisted on is found out at start. And vLLM merges what context-parallel ranks offer: only
        # one of them could tell how far its slice has grown.
        insists = Policy.REQUIRE in {self.settings.hugepages, self.settings.memlock}
        self._grows = not insists and config.parallel.pcp_size == 1
        self._may_be_short = self._grows and self.settings.attached
        self.growth_path = ""
        self.steps = Steps()
        """Of this worker, which tells of them while its slice grows."""
        self.region_offer: RegionOffer | None = None
        self.find_layers: Callable[[Layout], dict[str, LayerPlace]] = lambda _: {}
        """Tells where the engine's layers lie in a block of a layout; set before `get_worker`."""
        self.geometry = tier_geometry(
            self.settings,
            block_bytes=config.worker_kv_bytes_per_block,
            blocks_per_chunk=self.blocks_per_chunk,
            ranks=config.parallel.world_size,
            replicated=self.replicated_layout,
        )

    @classmethod
    @override
    def build_metric_definitions(cls, extra_config: dict[str, Any]) -> dict[str, OffloadingMetricMetadata]:
        """Return the tiers' own metrics."""
        on_disk = disk_tier.DEFINITIONS if extra_config.get("disk_path") else {}
        remote = remote_tier.DEFINITIONS if extra_config.get("remote_url") else {}
        return cpu_tier.DEFINITIONS | hints.DEFINITIONS | on_disk | remote

    @classmethod
    def config_info_keys(cls, extra_config: dict[str, Any]) -> tuple[str, ...]:  # noqa: ARG003 - vLLM gives it
        """Return the names of what `KVTierManager.config_info` tells; a newer vLLM asks."""
        return LABELS

    @cached_property
    def _manager(self) -> KVTierManager:
        tokens_per_chunk = {
            group.group_id: group.tokens_per_block * self.blocks_per_chunk for group in self.config.groups
        }
        return KVTierManager(
            self.geometry,
            tokens_per_chunk,
            with_events=self.kv_events_config.enable_kv_cache_events,
            slots_there=0,
            facts=TierFacts.of(self.settings, self.geometry, tokens_per_chunk),
            sharing=Sharing.of(self.settings.cpu_retained_share, self.settings.tenants),
        )

    @override
    def get_manager(self) -> OffloadingManager:
        """Return the scheduler's side."""
        return self._manager

    @override
    def get_worker(self, kv_caches: CanonicalKVCaches) -> OffloadingWorker:
        """Map this rank's slice and return the worker that fills and reads it."""
        memory = self._attach()
        copier, pinning = self._device(memory)
        layout = canonical_layout(
            kv_caches,
            blocks_per_chunk=self.blocks_per_chunk,
            block_bytes=self.config.worker_kv_bytes_per_block,
            slot_bytes=self.geometry.slot_bytes,
            region_address=memory.address,
        )
        return KVTierWorker(
            layout,
            memory,
            copier,
            layerwise_disk_loads=self._layerwise_disk_loads(layout, copier),
            growth=self._growth(memory, pinning),
            layerwise_gpu_loads=self._layerwise_gpu_loads(layout, copier),
        )

    def _growth(self, memory: region.Slice, pinning: pin.Pinning) -> Growth | None:
        """Have the slice grow beside the engine, or take and lock all of it now."""
        words, self.growth_path = GrowthWords.create()
        pieces = self._pieces(memory)
        if not pieces:
            words.tell(Grown(0, 0, is_over=True))
            self._say_of_rank(
                f"there is no CPU tier: {memory.report.why or 'memory is short'}", is_short=True
            )
            return None
        if self._grows:
            on_hugepages = memory.report.on_hugetlbfs
            page_bytes = self.settings.hugepage_bytes if on_hugepages else SMALL_PAGE_BYTES
            return Growth(
                memory,
                pieces,
                page_bytes=page_bytes,
                pinning=pinning,
                pace=Pace(self.steps, ranks=self.config.parallel.world_size),
                words=words,
                say=self._say_of_rank,
            )
        report = pin.lock(memory, pieces, pinning)
        slots = self.geometry.slots
        if pinning.is_needed:
            slots = report.pinned_bytes // self.geometry.slot_bytes
        words.tell(Grown(slots, report.pinned_bytes, is_over=True))
        self._say_of_rank(f"{memory.report}; {report}", slots < self.geometry.slots)
        return None

    def _pieces(self, memory: region.Slice) -> tuple[Piece, ...]:
        """Return the pieces of this rank's slice that are to be taken.

        An attached engine whose memory does not hold all of the tier keeps half of what is left for itself.
        """
        if not memory.report.total_bytes:
            return ()
        pieces = tuple(pieces_of(self.geometry.slots, self.geometry.slot_bytes))
        if not self._may_be_short or memory.report.on_hugetlbfs:
            return pieces
        bound = tightest_bound()
        if memory.size_bytes * self.geometry.slices <= bound.available_bytes:
            return pieces
        fit = pieces_within(pieces, max(bound.available_bytes, 0) // 2 // self.geometry.slices)
        there = format_bytes(fit[-1].offset_bytes + fit[-1].size_bytes) if fit else "nothing"
        self._say_of_rank(
            f"this rank's part of the CPU tier is {there} of {format_bytes(memory.size_bytes)}: "
            f"{bound.source} leaves {format_bytes(max(bound.available_bytes, 0))}; give the pod more memory",
            is_short=True,
        )
        return fit

    def _say_of_rank(self, line: str, is_short: bool) -> None:
        tell = log.warning if is_short else log.info
        tell("kvtier: rank %d: %s", self.config.parallel.rank, line)

    def _attach(self) -> region.Slice:
        """Have the first rank make the region and every rank map its slice of it."""
        group = engine_ranks()
        number = 0 if self.replicated_layout else self.config.parallel.rank
        offer: region.RegionHandle | ConnectorError | None = None
        descriptor = -1
        nodes = _nodes(group)[: self.geometry.slices]
        if group.rank_in_group == 0:
            try:
                request = replace(
                    self.geometry.request(self.settings),
                    nodes=tuple(nodes),
                    grows=self._grows,
                    may_be_short=self._may_be_short,
                )
                offer, descriptor = region.create(request)
            except ConnectorError as error:
                offer = error  # the other ranks wait for an answer
            except OSError as error:
                offer = RegionError(f"the region cannot be made: {error}")
        offer = group.broadcast_object(offer)
        if not isinstance(offer, region.RegionHandle):
            refusal = offer or ConnectorError("the first rank has sent no region")
            if self.settings.attached:
                return region.nothing(str(refusal))
            raise refusal
        if current_platform.is_cpu():  # a GPU's driver locks by itself, beyond any RLIMIT_MEMLOCK
            pin.preflight(offer.report, offer.slice_bytes, self.settings.memlock)
        try:
            memory = self._map(offer, number)
            if group.world_size > 1:
                group.barrier()
        finally:
            if descriptor >= 0 and not self.settings.has_tiers_behind:
                os.close(descriptor)
        if descriptor >= 0 and self.settings.has_tiers_behind:
            # The scheduler opens the descriptor, which stays open for that.
            self.region_offer = RegionOffer(offer)
        return memory

    def _map(self, offer: region.RegionHandle, number: int) -> region.Slice:
        try:
            return (region.map_slice if self._grows else region.attach)(offer, number)
        except (ConnectorError, OSError) as error:
            if not self.settings.attached:
                raise
            return region.nothing(str(error))

    def _layerwise_disk_loads(self, layout: Layout, copier: Copier) -> LayerwiseDiskLoads | None:
        """Offer to begin steps while the disk still reads, where copies are a step's own and one rank's."""
        may_wait = self.settings.disk_path and self.config.parallel.world_size == 1
        parts = layer_parts(layout) if may_wait else ()
        if not parts or self.region_offer is None or not isinstance(copier, MemcpyCopier):
            return None
        words = arrivals.create(self.geometry.slots)
        ends = tuple(part.end_bytes for part in parts)
        self.region_offer = replace(self.region_offer, part_ends=ends, arrivals=words)
        return LayerwiseDiskLoads(parts, arrivals.attach(words), self.settings.disk_timeout_s)

    def _layerwise_gpu_loads(self, layout: Layout, copier: Copier) -> LayerwiseGpuLoads | None:
        """Have layers wait for their own part of a load, where the device copies and nobody says no."""
        if not self.settings.layered_loads or not isinstance(copier, PartsCopier):
            return None
        return LayerwiseGpuLoads(layout, self.find_layers(layout), copier)

    def _device(self, memory: region.Slice) -> tuple[Copier, pin.Pinning]:
        if current_platform.is_cpu():
            return MemcpyCopier(), pin.by_kernel(memory, self.settings.memlock)
        if current_platform.is_cuda():
            from kvtier_connector.vllm.copies.copier_cuda import CudaCopier  # noqa: PLC0415 - needs CUDA

            copier = CudaCopier()
            return copier, pin.by_driver(self.settings.memlock, copier.register)
        raise UnsupportedEngineError(
            f"kvtier's connector does not support {current_platform.device_name}; it runs on CUDA and CPU"
        )


def _nodes(group: GroupCoordinator) -> list[int | None]:
    """Return the NUMA node of each rank's device."""
    nodes: list[int | None] = [None] * group.world_size
    if current_platform.is_cuda():
        device = torch.cuda.get_device_properties(torch.cuda.current_device())
        own = numa.node_of_pci(device.pci_domain_id, device.pci_bus_id, device.pci_device_id)
    else:
        own = numa.node_of_cpus(os.sched_getaffinity(0))
    if group.world_size == 1:
        return [own]
    torch.distributed.all_gather_object(nodes, own, group=group.cpu_group)
    return nodes
