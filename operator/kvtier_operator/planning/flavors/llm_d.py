"""llm-d-router, 0.9 and 0.10."""

from typing import Final

from kvtier_operator.planning.flavors.traits import EndingInput, FlavorTraits, PickerEnding, in_upstreams_time
from kvtier_scorer.config.flavors.document import minor_version

_HAS_DRAIN_TIMEOUT: Final = (0, 10)
"""llm-d-router, pkg/epp/server/options.go of v0.10.0; v0.9.0 does not know the argument."""


def _ending(inputs: EndingInput) -> PickerEnding:
    """Told to drain for a time, it goes on to take calls, with a list of pods that no longer changes.

    Those under way it gives all the time there is. A leader lets a standby lead first: before it is told,
    none can.
    """
    if minor_version(inputs.version) < _HAS_DRAIN_TIMEOUT:
        return in_upstreams_time(inputs)
    seen_s = inputs.ending.pre_stop_s
    before_s, while_draining_s = (0, seen_s) if inputs.replicas > 1 else (seen_s, 0)
    return PickerEnding(before_s, (f"--drain-timeout={while_draining_s}s",))


TRAITS: Final = FlavorTraits(
    title="llm-d-router",
    image="ghcr.io/llm-d/llm-d-router-endpoint-picker:v{version}",
    ending=_ending,
    # the same under its own group, from 0.9
    objectives=("inference.networking.x-k8s.io", "llm-d.ai"),
    # v0.10.0, pkg/epp/framework/plugins/requestcontrol/dataproducer/approximateprefix/metrics.go
    hit_ratio="llm_d_epp_prefix_indexer_hit_ratio",
)
