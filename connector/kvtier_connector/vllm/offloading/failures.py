"""What the scheduler does with the workers' reports of failed transfers: their chunks become misses."""

from collections.abc import Callable

from kvtier_connector.vllm.offloading.manager import KVTierManager
from kvtier_connector.vllm.offloading.sync_loads import SyncLoads
from kvtier_connector.vllm.offloading.transfer import KVTierWorkerMetadata
from kvtier_connector.vllm.upstream.scheduler import UpstreamScheduler


class Failures:
    """Of one engine's transfers.

    Args:
        upstream: vLLM's side.
        manager: The tiers' manager.
        sync_loads: Keeps the books of the loads that steps do themselves.
        evict_blocks: Takes device blocks out of the device's prefix cache.
    """

    def __init__(
        self,
        upstream: UpstreamScheduler,
        manager: KVTierManager,
        sync_loads: SyncLoads,
        evict_blocks: Callable[[frozenset[int]], None],
    ) -> None:
        self._upstream = upstream
        self._manager = manager
        self._sync_loads = sync_loads
        self._evict_blocks = evict_blocks

    def take(self, report: KVTierWorkerMetadata) -> None:
        """Make misses of what failed before it is completed."""
        if self._manager.disk is not None:
            self._manager.disk.poll()  # a load may have ended that was ahead of what is known here
        for job_id in report.failed_jobs:
            self._forget(job_id)

    def _forget(self, job_id: int) -> None:
        """Invalidate a failed job's chunks, and have its request offer them again once computed."""
        sync_load = self._sync_loads.find(job_id)
        job = sync_load.job if sync_load else self._upstream.job(job_id)
        if job is None:
            return  # a job from before a cache reset
        if sync_load:
            # Until they are computed again, nobody else may find these blocks in the device's cache.
            self._evict_blocks(sync_load.block_ids)
        self._manager.invalidate(job.keys)
        if sync_load:
            self._upstream.count_as_computed(job.request_id)
        self._upstream.offer_again(job.request_id)
