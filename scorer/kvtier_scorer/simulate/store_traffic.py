"""The network between the store of the remote tier and the pods."""

from typing import Final

from kvtier_scorer.simulate.settings import StoreSettings

MARGIN: Final = 1.05
"""How many times sooner reading has to be than computing, and """
STEP_S: Final = 0.003
"""by how many seconds more: kvtier's connector reads only then (ADR 0022)."""


class StoreTraffic:
    """A link of each pod's and one of the store's own; what is read queues for both."""

    def __init__(self, settings: StoreSettings, pods: int) -> None:
        self._settings = settings
        self._pod_free_s = [0.0] * pods
        self._free_s = 0.0

    def read_by(self, pod: int, size_bytes: int, now_s: float) -> float:
        """When so much would be read if it were begun now."""
        return max(self._ends_s(pod, size_bytes, now_s))

    def read(self, pod: int, size_bytes: int, now_s: float) -> float:
        """Begin to read; returns when it is done."""
        self._pod_free_s[pod], self._free_s = ends_s = self._ends_s(pod, size_bytes, now_s)
        return max(ends_s)

    def _ends_s(self, pod: int, size_bytes: int, now_s: float) -> tuple[float, float]:
        """When the pod's link is done with it, and the store's."""
        settings = self._settings
        return (
            max(now_s, self._pod_free_s[pod]) + size_bytes / settings.pod_bytes_per_s,
            max(now_s, self._free_s) + size_bytes / settings.bytes_per_s,
        )
