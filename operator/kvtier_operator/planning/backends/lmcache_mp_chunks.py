"""What LMCache's server keeps together, and what that takes of models whose layers keep different things.

Sources, lmcache 0.5.6: integration/vllm/lmcache_mp_connector.py (a chunk must be a multiple of every group's
block), v1/kv_layer_groups.py (`--separate-object-groups`; get_subchunk_sw_size_tokens: of a window, a chunk
keeps its last tokens), v1/multiprocess/modules/lmcache_driven_transfer.py (all_null_chunk_masks: of states,
what a step has left).
"""

from math import lcm
from typing import Final

from kvtier_operator.planning.geometry import Geometry, LayerKind
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
    if not window or _has_states(geometry):
        return None
    tokens = chunk_tokens(geometry)
    windows = geometry.bytes_per_prefix * min(tokens, window) // window
    return geometry.kv_bytes_per_token * tokens + windows


def chunk_notes(geometry: Geometry) -> tuple[str, ...]:
    """What a reader of the report should know of it."""
    notes = []
    tokens = chunk_tokens(geometry)
    if tokens != _DEFAULT_CHUNK_TOKENS:
        notes.append(f"backend LMCacheMP keeps chunks of {count(tokens)} tokens, whole blocks of the engine")
    if geometry.bytes_per_prefix and _has_states(geometry):
        notes.append(
            "backend LMCacheMP keeps the states at the end of each step of a prefill, not of a prompt alone: "
            f"{size(geometry.bytes_per_prefix)} for every --max-num-batched-tokens of it"
        )
    elif _window_tokens(geometry) and geometry.bytes_per_prefix:
        notes.append("backend LMCacheMP keeps a part of every window with each chunk, not once a prefix")
    return tuple(notes)


def _window_tokens(geometry: Geometry) -> int:
    """Of the windows that are kept as such; 0 where none are."""
    if not geometry.bytes_per_prefix:
        return 0
    return max((group.window_tokens for group in geometry.groups), default=0)


def _has_states(geometry: Geometry) -> bool:
    return any(group.kind is LayerKind.STATE for group in geometry.groups)
