"""What one prefix keeps of windows and states beside its tokens: once, or again and again along it."""

from typing import Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.base.tier_plan import BackendPlan
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.units import ceil_div

RETENTION: Final = "--prefix-cache-retention-interval"
EVERYWHERE: Final = frozenset({"", "None"})
"""Its values that keep every block."""


def kept_bytes(tokens: int, spec: Spec, geometry: Geometry, backend: BackendPlan | None = None) -> int:
    """Bytes beside the tokens of one prefix, all ranks of one engine.

    Args:
        tokens: Of the prefix.
        spec: What is wanted.
        geometry: KV geometry of one engine.
        backend: Whose tiers keep it; None on the device.
    """
    once = geometry.bytes_per_prefix
    if backend is not None and backend.states_every_tokens is not None:
        return once * max(1, ceil_div(tokens, backend.states_every_tokens))
    interval = retention_tokens(spec, geometry)
    if interval is None:
        return once
    # windows that lie closer than their length share their blocks
    window = (
        0 if geometry.keeps_states else max((group.window_tokens for group in geometry.groups), default=0)
    )
    own = once * min(interval, window) // window if window else once
    return once + tokens // interval * own


def retention_tokens(spec: Spec, geometry: Geometry) -> int | None:
    """Tokens after which vLLM keeps windows and states again; None where it does so at a prompt's end."""
    arguments = spec.engine.extra_args
    if not geometry.bytes_per_prefix:
        return None
    if arguments.value(RETENTION) in EVERYWHERE:
        return geometry.block_tokens
    interval = arguments.number(RETENTION)
    return interval if interval is not None and interval > 0 else None
