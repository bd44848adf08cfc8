"""A connector whose tier grows only while nobody holds it: requests beside that and without take turns.

vLLM imports it by name.
"""

from tests.bench.connector.growth import while_nobody_holds

from kvtier_connector.core.region.pace import Pace
from kvtier_connector.vllm import spec
from kvtier_connector.vllm.connector import KVTierConnector

__all__ = ["KVTierConnector"]


class HeldPace(Pace):
    """Rests for as long as the tier is held, too."""

    def rest(self, worked_s: float, share: float, *, least_s: float = 0.0) -> bool:
        """Rest as asked, then until nobody holds the tier."""
        may_go_on = super().rest(worked_s, share, least_s=least_s)
        while_nobody_holds()
        return may_go_on


spec.Pace = HeldPace  # type: ignore[attr-defined] # it makes one for each worker
