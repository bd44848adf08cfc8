"""Inner parts of a worker's side of vLLM's offloading connector.

Source: vLLM 0.32 and 0.33, worker.py in vllm/distributed/kv_transfer/kv_connector/v1/offloading.
"""

from collections.abc import Mapping
from typing import Any, Final

from vllm.distributed.kv_transfer.kv_connector.v1.offloading.worker import OffloadingConnectorWorker
from vllm.v1.kv_offload.base import OffloadingWorker

from kvtier_connector.vllm.upstream.classes import OffloadingConnectorMetadata, TransferJob
from kvtier_connector.vllm.upstream.internals import require_attributes

_ATTRIBUTES: Final = ("_connector_worker_meta", "_load_jobs", "_unsubmitted_store_jobs", "spec", "worker")


class UpstreamWorker:
    """vLLM's side in a worker.

    Args:
        worker: vLLM's.

    Raises:
        UnsupportedEngineError: It lacks inner attributes.
    """

    def __init__(self, worker: OffloadingConnectorWorker) -> None:
        require_attributes(worker, _ATTRIBUTES)
        self._worker = worker

    @property
    def spec(self) -> Any:  # noqa: ANN401 - vLLM has no types
        """The spec that vLLM made in this process; kvtier's."""
        return self._worker.spec

    @property
    def worker(self) -> OffloadingWorker | None:
        """What the spec made of the KV caches; None before there are any."""
        return self._worker.worker

    @property
    def has_stores_put_off(self) -> bool:
        """Whether it has stores to begin in the next step, which has transfers then."""
        return bool(self._worker._unsubmitted_store_jobs)

    @property
    def requests_of_loads(self) -> dict[int, str | None]:
        """Whose each running load is, by job; it forgets a load when it reports that."""
        return dict(self._worker._load_jobs)

    def begin(self, loads: Mapping[int, TransferJob]) -> None:
        """Begin loads before the step's own hook does."""
        orders = OffloadingConnectorMetadata(dict(loads), store_jobs={}, jobs_to_flush=None)
        self._worker.start_kv_transfers(orders)

    def mark_completed(self, job_id: int) -> None:
        """Report a store as done that is not to be done, as it does for one that is not this rank's."""
        self._worker._connector_worker_meta.mark_completed(job_id)
