"""The pods of a namespace that have some labels: no InferencePool is needed, nor its CRD."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kvtier_common.kubernetes.client import Api
from kvtier_scorer.picker.pods.pod_reflector import USUAL_WAIT_S, pod_reflector
from kvtier_scorer.picker.pods.pool_objects import Pool
from kvtier_scorer.picker.pods.ready_endpoints import ReadyEndpoints
from kvtier_scorer.picker.pods.source import EndpointSink


@dataclass(slots=True)
class SelectedPods:
    """The ready pods with these labels.

    Attributes:
        api: The API server; closed when this ends.
        namespace: Of the pods.
        labels: What they have; at least one.
        ports: What each of them serves on.
        wait_s: Seconds to wait after so many failures in a row.
    """

    api: Api
    namespace: str
    labels: Mapping[str, str]
    ports: Sequence[int]
    wait_s: Callable[[int], float] = USUAL_WAIT_S
    _synced: bool = False

    @property
    def synced(self) -> bool:
        """Whether all pods have been listed once."""
        return self._synced

    async def run(self, sink: EndpointSink) -> None:
        """Tells of pods until cancelled."""
        pool = Pool(self.labels, self.ports)
        endpoints = ReadyEndpoints(sink)
        try:
            await pod_reflector(self.api, self.namespace, pool, endpoints, self._listed, self.wait_s).run()
        finally:
            await self.api.close()

    def _listed(self) -> None:
        self._synced = True
