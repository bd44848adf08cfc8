"""The sync loads of the step that a worker runs: begun, waited for, and taken back where they fail."""

from vllm.forward_context import ForwardContext

from kvtier_connector.vllm.offloading.sync_loads import asks_for_layers, sync_jobs
from kvtier_connector.vllm.offloading.worker import KVTierWorker
from kvtier_connector.vllm.upstream.classes import OffloadingConnectorMetadata, TransferJob
from kvtier_connector.vllm.upstream.worker import UpstreamWorker


class RunningStep:
    """One step after the other.

    Args:
        upstream: vLLM's side, which begins the loads.
    """

    def __init__(self, upstream: UpstreamWorker) -> None:
        self._upstream = upstream
        self._loads: dict[int, TransferJob] = {}
        self._layerwise = list[int]()
        self._unfilled_block_ids: set[int] = set()
        self._failed_stores: set[int] = set()

    @property
    def is_layerwise(self) -> bool:
        """Whether layers have to wait for their part of a load."""
        return bool(self._layerwise)

    @property
    def request_ids(self) -> set[str]:
        """The requests that compute in this very step on what it loads."""
        return {job.req_id for job in self._loads.values()}

    def begin(self, orders: OffloadingConnectorMetadata | None) -> None:
        """Begin the loads that a step computes with, of its orders; None for a step without transfers."""
        self._loads = sync_jobs(orders.load_jobs) if orders is not None else {}
        if self._loads:
            self._upstream.begin(self._loads)

    def leave_out(self, orders: OffloadingConnectorMetadata) -> None:
        """Take the loads that have begun out of the step's orders."""
        for job_id in self._loads:
            del orders.load_jobs[job_id]

    def compute(
        self, worker: KVTierWorker, orders: OffloadingConnectorMetadata, context: ForwardContext
    ) -> None:
        """Return when the step can compute; its layers may have to wait for their parts one by one."""
        if asks_for_layers(context):
            self._layerwise = worker.in_parts(self._loads)
        if not self._layerwise:
            self.end(worker, orders, has_computed=False)

    def wait_for_layer(self, worker: KVTierWorker, orders: OffloadingConnectorMetadata, layer: int) -> None:
        """Have a layer, counted from 0, wait for its part of the loads."""
        if worker.wait_for_layer(self._layerwise, layer):
            self.end(worker, orders, has_computed=True)

    def end(self, worker: KVTierWorker, orders: OffloadingConnectorMetadata, *, has_computed: bool) -> None:
        """Return when the loads have ended. What has computed on a failed one is neither kept nor stored."""
        self._layerwise = []
        if self._loads:
            for job_id in worker.finish(self._loads, has_computed=has_computed):
                self._take_back(orders, self._loads[job_id])

    def take_unfilled(self) -> set[int]:
        """Return the device blocks that failed loads have left unfilled, since the last call."""
        unfilled, self._unfilled_block_ids = self._unfilled_block_ids, set()
        return unfilled

    def take_failed_stores(self) -> set[int]:
        """Return the stores that were reported as done and are not, since the last call."""
        failed, self._failed_stores = self._failed_stores, set()
        return failed

    def _take_back(self, orders: OffloadingConnectorMetadata, load: TransferJob) -> None:
        """Have vLLM compute again what this step computes on a failed load, and keep none of it."""
        self._unfilled_block_ids.update(int(block) for block in load.dst_spec.block_ids)
        for job_id, store in list(orders.store_jobs.items()):
            if store.req_id == load.req_id:
                del orders.store_jobs[job_id]
                self._failed_stores.add(job_id)
                self._upstream.mark_completed(job_id)
