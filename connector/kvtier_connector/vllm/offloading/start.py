"""What happens at start: warnings, and what workers offer the scheduler's process."""

import threading
from collections.abc import Callable, Mapping
from typing import Final

from vllm.config import VllmConfig
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorHandshakeMetadata
from vllm.platforms import current_platform
from vllm.v1.kv_cache_interface import KVCacheConfig, MambaSpec

from kvtier_connector.complete import refusals
from kvtier_connector.config import CUDA_CHUNK_TOKENS, ConnectorConfig
from kvtier_connector.core.behind.messages import MemoryOf
from kvtier_connector.core.behind.tier import TierBehind
from kvtier_connector.core.disk.files.fingerprint import Fingerprint, fingerprint
from kvtier_connector.core.index.slots import TierGeometry
from kvtier_connector.core.region.growth import GrowthWords, together
from kvtier_connector.core.region.region import RegionHandle, RegionOffer, open_whole
from kvtier_connector.errors import ConnectorError
from kvtier_connector.vllm.behind.disk import open_tier_behind_region
from kvtier_connector.vllm.behind.remote import open_remote_tier
from kvtier_connector.vllm.fingerprint import engine_facts, weights_contents
from kvtier_connector.vllm.offloading.manager import KVTierManager
from kvtier_connector.vllm.offloading.steps import WorkerOffer
from kvtier_connector.vllm.upstream.compat import log

_CRYPTOGRAPHIC: Final = ("sha256", "sha256_cbor")


def warn_of_weak_hash(algorithm: str) -> None:
    """Say once, at start, what a hash that is not cryptographic lets clients do."""
    if algorithm not in _CRYPTOGRAPHIC:
        log.warning(
            "kvtier: --prefix-caching-hash-algo %s: a client can make a prompt that is answered from "
            "another's KV cache; where clients do not trust each other set sha256, vLLM's default, or "
            "sha256_cbor",
            algorithm,
        )


def warn_of_states(kv_cache_config: KVCacheConfig, blocks_per_chunk: int) -> None:
    """Say once, at start, that chunks of several blocks leave most prompts of such a model without a hit.

    vLLM keeps a state where a prompt's last block ends, and stores it only if a chunk ends there too
    (offloading/scheduler.py, _build_aligned_boundary_store_jobs).
    """
    keep_states = any(
        isinstance(group.kv_cache_spec, MambaSpec) and group.kv_cache_spec.mamba_cache_mode == "align"
        for group in kv_cache_config.kv_cache_groups
    )
    if keep_states and blocks_per_chunk > 1:
        log.warning(
            "kvtier: blocks_per_chunk %d: this model keeps states, which are stored only where a prompt ends "
            "at a chunk's end, about one of %d; set blocks_per_chunk to 1",
            blocks_per_chunk,
            blocks_per_chunk,
        )


def choose_blocks_per_chunk(kv_cache_config: KVCacheConfig, config: VllmConfig) -> int:
    """Return `blocks_per_chunk` as the planner chooses it, for an engine of which no planner knew.

    vLLM settles the size of a block when it has loaded the model. It wants a retention interval to be whole
    chunks, which one of whole blocks need not be if they are larger.
    """
    specs = [group.kv_cache_spec for group in kv_cache_config.kv_cache_groups]
    keeps_states = any(isinstance(spec, MambaSpec) for spec in specs)
    if not specs or keeps_states or current_platform.is_cpu():
        return 1
    block_tokens: int = max(spec.block_size for spec in specs)
    block_tokens *= config.parallel_config.decode_context_parallel_size
    blocks = max(CUDA_CHUNK_TOKENS // block_tokens, 1)
    interval_tokens = config.cache_config.prefix_cache_retention_interval or 0
    return 1 if interval_tokens % (blocks * block_tokens) else blocks


class Handshake:
    """The manager's memory and what is behind it, as workers offer it."""

    def __init__(
        self, settings: ConnectorConfig, manager: KVTierManager, config: VllmConfig, kv_cache: KVCacheConfig
    ) -> None:
        self._settings = settings
        self._manager = manager
        self._config = config
        self._kv_cache = kv_cache
        self._growing: list[GrowthWords] = []

    def take(self, offered: Mapping[int, KVConnectorHandshakeMetadata], *, in_parts: bool) -> None:
        """Follow how the workers' slices grow, and open the tiers behind them."""
        offers = [offer for offer in offered.values() if isinstance(offer, WorkerOffer)]
        self._growing = [GrowthWords.attach(offer.growth) for offer in offers]
        self.grow()
        regions = [offer.region for offer in offers if offer.region is not None]
        if not self._settings.has_tiers_behind or not regions or self._manager.behind is not None:
            return  # an engine that wakes up offers once more what is open already
        region = regions[0]
        with refusals():
            tiers = self._try_to_open(lambda: self._open_tiers(region))
        if not tiers:
            return
        self._manager.put_behind(
            tiers,
            most_tokens=self._config.model_config.max_model_len,
            part_ends=region.part_ends if in_parts else (),
        )
        self._warm_up()

    def _warm_up(self) -> None:
        """Have memory filled before the engine serves; without that it serves, too."""
        behind = self._manager.behind
        if behind is None or not self._settings.warm_start_s:
            return
        try:
            behind.warm_up(self._settings.warm_start_s, self._is_growing)
        except Exception as error:  # noqa: BLE001 - whatever it is, the engine starts cold
            log.warning("kvtier: memory is not warmed: %s: %s", type(error).__name__, error)

    def _is_growing(self) -> bool:
        self.grow()
        return bool(self._growing)

    def _open_tiers(self, offer: RegionOffer) -> list[TierBehind]:
        """Open what is behind memory. Raises ConnectorError: a tier cannot be had as it is asked for."""
        settings, geometry = self._settings, self._manager.geometry
        facts = engine_facts(self._config, self._kv_cache, geometry)
        memory_of = _memory_of(offer.region, geometry)
        news = threading.Event()  # one for all: who waits, waits for any of them
        tiers = list[TierBehind]()
        if settings.disk_path:
            tiers += self._try_to_open(
                lambda: [
                    open_tier_behind_region(
                        settings,
                        geometry,
                        self._config,
                        fingerprint(facts),
                        offer,
                        memory_of,
                        self._manager.chunk_tokens,
                        news,
                    )
                ]
            )
        if settings.remote_url:
            prefill = tiers[0].break_even.prefill if tiers else None
            model = self._config.model_config

            def shared_fingerprint() -> Fingerprint:
                if not settings.remote_weights_read:
                    return fingerprint(facts)
                log.info("kvtier: the remote tier begins once the weights are read, which name its blocks")
                return fingerprint({**facts, "weights": weights_contents(model)})

            tiers += self._try_to_open(
                lambda: [
                    open_remote_tier(
                        settings,
                        shared_fingerprint,
                        memory_of,
                        block_bytes=geometry.chunk_bytes,
                        memory_slots=geometry.slots,
                        news=news,
                        prefill=prefill,
                    )
                ]
            )
        return tiers

    def _try_to_open(self, tiers: Callable[[], list[TierBehind]]) -> list[TierBehind]:
        """Open tiers; an attached engine serves without those that it cannot have."""
        try:
            return tiers()
        except ConnectorError as error:
            if not self._settings.attached:
                raise
            log.warning("kvtier: the engine goes on without a tier: %s", error)
            return []

    def grow(self) -> None:
        """Take note of how far the slices have grown, until no more comes."""
        if self._growing:
            grown = together(self._growing, self._manager.geometry.slices)
            self._manager.grow(grown)
            if grown.is_over:
                self._growing.clear()


def _memory_of(region: RegionHandle, geometry: TierGeometry) -> MemoryOf:
    """Return where a slot's bytes are, of all slices. Raises RegionError: the memory cannot be reached."""
    memory = open_whole(region)

    def memory_of(slot: int) -> tuple[memoryview, ...]:
        first = slot * geometry.slot_bytes
        return tuple(
            memory[start : start + geometry.slot_bytes]
            for start in range(first, first + geometry.slices * region.slice_bytes, region.slice_bytes)
        )

    return memory_of
