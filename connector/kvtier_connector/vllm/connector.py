"""The connector that vLLM loads: upstream's OffloadingConnector, which a failed load does not kill.

Upstream's scheduler keeps the hard parts: hybrid models, tensor parallelism, partial chunks, fences against
reusing device blocks whose store is in flight. What is added here: settings are parsed strictly, a failed
transfer makes its chunks a miss and the request is computed instead, and steps without work wait for copies.
"""

from typing import Any, Final

from typing_extensions import override
from vllm.config import VllmConfig
from vllm.distributed.kv_transfer.kv_connector.v1 import KVConnectorRole
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorTransferResults
from vllm.distributed.kv_transfer.kv_connector.v1.offloading_connector import OffloadingConnector
from vllm.forward_context import ForwardContext
from vllm.platforms import current_platform
from vllm.v1.kv_cache_interface import KVCacheConfig
from vllm.v1.outputs import KVConnectorOutput

from kvtier_connector.config import parse_extra_config
from kvtier_connector.errors import SettingError
from kvtier_connector.vllm.manager import KVTierManager
from kvtier_connector.vllm.transfer import KVTierWorkerMetadata
from kvtier_connector.vllm.worker import KVTierWorker

_IDLE_WAIT_S: Final = 0.05
"""Long enough that an engine which waits for a load takes no core from its copies, short enough that a new
request does not notice."""


class KVTierConnector(OffloadingConnector):  # type: ignore[misc] # vLLM has no types
    """A CPU tier behind the engine's prefix cache."""

    def __init__(
        self, vllm_config: VllmConfig, role: KVConnectorRole, kv_cache_config: KVCacheConfig
    ) -> None:
        transfer = vllm_config.kv_transfer_config
        parse_extra_config(transfer.kv_connector_extra_config)
        if transfer.kv_load_failure_policy != "recompute":
            raise SettingError(
                f"kv_load_failure_policy: got {transfer.kv_load_failure_policy!r}, must be 'recompute': "
                "a failed load is a miss"
            )
        self._idle_step = False
        self._failed_jobs: set[int] = set()
        super().__init__(vllm_config, role, kv_cache_config)

    @classmethod
    @override
    def get_required_kvcache_layout(cls, vllm_config: VllmConfig) -> str | None:
        """Prefer block-major KV caches: one copy per block instead of one per block and layer."""
        return None if current_platform.is_cpu() else "BLHNC"

    # ---- in the workers ----

    @override
    def start_load_kv(self, forward_context: ForwardContext, **kwargs: Any) -> None:
        """Begin the step's loads and the last step's stores."""
        self._idle_step = forward_context.attn_metadata is None
        super().start_load_kv(forward_context, **kwargs)

    @override
    def get_transfer_results(self, finished_req_ids: set[str]) -> KVConnectorTransferResults:
        """Report the transfers that ended, and the requests whose load failed."""
        worker = self._worker
        if self._idle_step:
            worker.pause(_IDLE_WAIT_S)
        request_of_load = dict(self.connector_worker._load_jobs)  # noqa: SLF001 - upstream forgets them in get_finished
        sent, received = self.get_finished(finished_req_ids)
        failed = worker.take_failed()
        self._failed_jobs |= failed
        failed_requests = {request_of_load[job_id] for job_id in failed & request_of_load.keys()}
        return KVConnectorTransferResults(sent, received, failed_requests - {None})

    @override
    def build_connector_worker_meta(self) -> KVTierWorkerMetadata | None:
        """Report the completed jobs, and which of them failed."""
        meta = super().build_connector_worker_meta()
        if meta is None:
            return None
        failed, self._failed_jobs = self._failed_jobs, set()
        return KVTierWorkerMetadata(meta.completed_jobs, meta.transfer_stats, failed)

    @property
    def _worker(self) -> KVTierWorker:
        worker = self.connector_worker.worker
        if not isinstance(worker, KVTierWorker):
            raise TypeError(f"the worker is a {type(worker).__name__}, not kvtier's")
        return worker

    # ---- in the scheduler ----

    @override
    def update_connector_output(self, connector_output: KVConnectorOutput) -> None:
        """Make misses of failed transfers before upstream completes them."""
        meta = connector_output.kv_connector_worker_meta
        if isinstance(meta, KVTierWorkerMetadata):
            for job_id in meta.failed_jobs:
                self._forget(job_id)
        super().update_connector_output(connector_output)

    def _forget(self, job_id: int) -> None:
        """Invalidate a failed job's chunks, and have its request offer them again once computed."""
        scheduler = self.scheduler
        job = scheduler._jobs.get(job_id)  # noqa: SLF001 - a job from before a cache reset is unknown
        if job is None:
            return
        if not isinstance(scheduler.manager, KVTierManager):
            raise TypeError(f"the manager is a {type(scheduler.manager).__name__}, not kvtier's")
        scheduler.manager.invalidate(job.keys)
        request = scheduler._req_status.get(job.req_id)  # noqa: SLF001 - upstream has no method for it
        if request is not None:
            for group in request.group_states:
                group.next_stored_chunk_idx = 0
