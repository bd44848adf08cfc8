"""How a pod ends, from the one number that its requests are given."""

from dataclasses import dataclass
from typing import Final

from kvtier_operator.api.resource import Spec

PRE_STOP_S: Final = 10
"""Until pickers, gateways and kube-proxy have seen that the pod goes. The engine serves as before meanwhile:
what comes once it drains, vLLM answers with 500 (seen with 0.33; v1/engine/async_llm.py, shutdown)."""
EXIT_S: Final = 10
"""For processes to end after their last request; the connector lets go of a disk within 5 s
(kvtier_connector.core.disk.timings). What is not written by then is computed again."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of an engine's and of a picker's pod, in its order."""

    pre_stop_s: int  # nothing has changed for the processes, but nobody should send them more
    drain_s: int  # then they take no more, and what is under way may take so long
    exit_s: int  # then they end

    @property
    def grace_s(self) -> int:
        """All of it, after which Kubernetes kills."""
        return self.pre_stop_s + self.drain_s + self.exit_s


def plan_ending(spec: Spec) -> Ending:
    """What follows from spec.engine.drainSeconds."""
    return Ending(PRE_STOP_S, spec.engine.drain_seconds, EXIT_S)
