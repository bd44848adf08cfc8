"""How pickers end: a gateway holds its call open until the request's answer has ended.

In each flavour a call that is open when the pod has to go may last for the ending's drain.
"""

from dataclasses import dataclass
from typing import Final

from kvtier_operator.planning.pod.ending import Ending

_UPSTREAM_S: Final = 30
"""What upstream's give calls under way: controller-runtime's time for what it runs (manager.go,
defaultGracefulShutdownPeriod), and the inference extension 1.4 and 1.5 and llm-d-router 0.9 leave it."""


@dataclass(frozen=True, slots=True)
class EndingInput:
    """What decides how a picker ends.

    Attributes:
        ending: Of its pod.
        version: Its version.
        replicas: How many there are, of which one leads.
    """

    ending: Ending
    version: str
    replicas: int


@dataclass(frozen=True, slots=True)
class PickerEnding:
    """The end of a picker's process.

    Attributes:
        pre_stop_s: How long it goes on as if nothing were: what calls need beyond what it gives them itself.
            0 for no such time.
        args: How long it gives them, for pickers that can be told.
    """

    pre_stop_s: int
    args: tuple[str, ...] = ()


def in_upstreams_time(given: EndingInput) -> PickerEnding:
    """Of a picker that cannot be told how long."""
    return PickerEnding(given.ending.pre_stop_s + max(given.ending.drain_s - _UPSTREAM_S, 0))
