"""What LMCache's server keeps together, and what that takes of models whose layers keep different things.

Sources, lmcache 0.5.6: integration/vllm/lmcache_mp_connector.py (a chunk must be a multiple of every group's
block), v1/kv_layer_groups.py (`--separate-object-groups`; get_subchunk_sw_size_tokens: of a window, a chunk
keeps its last tokens), v1/multiprocess/modules/lmcache_driven_transfer.py (all_null_chunk_masks: of states,
what a step has left).
"""

from math import lcm
from typing import Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.arguments.extra_args import value_of
from kvtier_operator.planning.backends.kept_states import STEP, step_tokens
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.units import count, round_up, size

_DEFAULT_CHUNK_TOKENS: Final = 256
"""LMCache's default `--chunk-size`; the smallest that is taken here."""


def chunk_tokens(geometry: Geometry) -> int:
    """Tokens of a chunk, whole blocks of every group of layers."""
    return round_up(_DEFAULT_CHUNK_TOKENS, lcm(*geometry.group_block_tokens))


def bytes_per_chunk(geometry: Geometry) -> int | None:
    """Bytes of a chunk with what it keeps of windows; None for its tokens' bytes.

    Every chunk has its part of each window, while vLLM's own tiers keep a window once a prefix.
    """
    window = _window_tokens(geometry)
    if not window or geometry.keeps_states:
        return None
    tokens = chunk_tokens(geometry)
    windows = geometry.bytes_per_prefix * min(tokens, window) // window
    return geometry.kv_bytes_per_token * tokens + windows


def states_every_tokens(spec: Spec, geometry: Geometry) -> int | None:
    """Tokens of a prefix after which the states are kept again: at the end of each step of its prefill."""
    if not geometry.bytes_per_prefix or not geometry.keeps_states:
        return None
    return max(step_tokens(spec.engine), chunk_tokens(geometry))


def chunk_notes(spec: Spec, geometry: Geometry) -> tuple[str, ...]:
    """What a reader of the report should know of it."""
    notes = []
    tokens = chunk_tokens(geometry)
    if tokens != _DEFAULT_CHUNK_TOKENS:
        notes.append(f"backend LMCacheMP keeps chunks of {count(tokens)} tokens, whole blocks of the engine")
    if (every := states_every_tokens(spec, geometry)) is not None:
        given = value_of(spec.engine.extra_args, STEP) is not None
        notes.append(
            "backend LMCacheMP keeps the states at the end of each step of a prefill, not of a prompt alone: "
            f"{size(geometry.bytes_per_prefix)} for every {count(every)} tokens of it, "
            + (STEP if given else f"vLLM's default of {STEP} by the GPU")
        )
    elif _window_tokens(geometry) and geometry.bytes_per_prefix:
        notes.append("backend LMCacheMP keeps a part of every window with each chunk, not once a prefix")
    return tuple(notes)


def _window_tokens(geometry: Geometry) -> int:
    """Of the windows that are kept as such; 0 where none are."""
    if not geometry.bytes_per_prefix:
        return 0
    return max((group.window_tokens for group in geometry.groups), default=0)
