"""How pickers end and are replaced: a gateway holds its call open until the request's answer has ended."""

from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.api.router import Flavor
from kvtier_operator.planning.plan import Plan
from kvtier_scorer.config.flavors.version import minor_version

_HAS_DRAIN_TIMEOUT: Final = (0, 10)
"""llm-d-router, pkg/epp/server/options.go of v0.10.0; v0.9.0 does not know the argument."""
_UPSTREAM_S: Final = 30
"""What the others give calls under way: controller-runtime's time for what it runs (manager.go,
defaultGracefulShutdownPeriod), and the inference extension 1.2 to 1.5 and llm-d-router 0.9 leave it."""


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


def picker_ending(plan: Plan) -> PickerEnding:
    """In each flavour a call that is open when the pod has to go may last for the ending's drain."""
    ending = plan.ending
    flavor = plan.resource.spec.router.flavor
    if flavor is Flavor.BUILTIN:
        return PickerEnding(ending.pre_stop_s, ("--grace-period", str(ending.drain_s)))
    if flavor is Flavor.LLM_D and minor_version(plan.router.version) >= _HAS_DRAIN_TIMEOUT:
        # It takes new calls for that time, with a list of pods that no longer changes; those under way it
        # gives all the time there is. A leader lets a standby lead first: before it is told, none can.
        before_s, while_draining_s = (0, ending.pre_stop_s) if _several(plan) else (ending.pre_stop_s, 0)
        return PickerEnding(before_s, (f"--drain-timeout={while_draining_s}s",))
    return PickerEnding(ending.pre_stop_s + max(ending.drain_s - _UPSTREAM_S, 0))


def picker_strategy(plan: Plan) -> dict[str, Any]:
    """The old one goes when the new one is ready; for some seconds each knows of its own requests only.

    Of pickers that elect a leader one alone is ever ready, and stays it until it goes: all new ones start
    beside the old ones and the first to find the leader gone takes over.
    """
    all_at_once = {"maxSurge": "100%", "maxUnavailable": "100%"}
    bounds = all_at_once if _several(plan) else {"maxSurge": 1, "maxUnavailable": 0}
    return {"type": "RollingUpdate", "rollingUpdate": bounds}


def _several(plan: Plan) -> bool:
    return plan.resource.spec.router.replicas > 1
