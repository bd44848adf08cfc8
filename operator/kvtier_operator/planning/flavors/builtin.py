"""kvtier's own picker."""

from typing import Final

from kvtier_operator.api.spec.router import Flavor
from kvtier_operator.planning.flavors.traits import EndingInput, FlavorTraits, MemoryTraits, PickerEnding
from kvtier_operator.planning.units import MIB

FLAVOR: Final = Flavor.BUILTIN
_BYTES_PER_ENTRY: Final = 32
"""What kvtier_scorer.index takes at most (a test of it measures 10 million entries)."""
_LOADED_BYTES: Final = 256 * MIB
"""With nothing to do: 205 MiB as measured, and some for the load itself."""
_TRANSPORT_BYTES: Final = 64 * MIB
"""What its transport holds at most: connections and streams by their windows and unsent bytes."""


def _ending(inputs: EndingInput) -> PickerEnding:
    return PickerEnding(inputs.ending.pre_stop_s, ("--grace-period", str(inputs.ending.drain_s)))


def _args(traced: bool) -> tuple[str, ...]:
    return ("--tracing=true",) if traced else ()


TRAITS: Final = FlavorTraits(
    title="kvtier's own picker",
    image="kvtier/picker:{version}",
    args=_args,
    tls_args=None,
    endpoint_args=("--tell-endpoint",),
    ending=_ending,
    memory=MemoryTraits(
        idle_bytes=_LOADED_BYTES + _TRANSPORT_BYTES,
        bytes_per_entry=_BYTES_PER_ENTRY,
        in_flight_bytes=0,
        bounds_bodies=True,
    ),
    adds_up_engines=True,  # kvtier_scorer.picker.engines.engine_metrics
    compiles=True,
    knows_probes=True,
    takes_whole_bodies=True,
)
