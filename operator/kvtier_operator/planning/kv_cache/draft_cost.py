"""What drafting tokens adds to a model's geometry beside layers of the model's kinds."""

from dataclasses import replace

from kvtier_operator.planning.arguments.speculation import DROPS_LAST_BLOCK
from kvtier_operator.planning.model_shape.geometry import Geometry, LayerKind
from kvtier_operator.planning.model_shape.layers.draft import Draft
from kvtier_operator.planning.units import ceil_div, count, many


def counted(geometry: Geometry, draft: Draft) -> Geometry:
    """The geometry with what only a sum tells of the draft, its weights, and words on both.

    Args:
        geometry: Of the model together with the draft's layers.
        draft: What drafts.
    """
    extra = draft.bytes_per_token
    weights = geometry.weights_bytes
    return replace(
        geometry,
        kv_bytes_per_token=geometry.kv_bytes_per_token + extra,
        kv_bytes_per_token_per_rank=geometry.kv_bytes_per_token_per_rank
        + ceil_div(extra, geometry.tensor_parallel_size),
        mla=geometry.mla and all(group.kind is LayerKind.MLA for group in draft.groups),
        weights_bytes=None if weights is None else weights + (draft.weights_bytes or 0),
        how=f"{geometry.how} + {count(extra)} B of the draft" if extra else geometry.how,
        notes=(*geometry.notes, *_notes(geometry, draft)),
        draft=draft,
    )


def _notes(geometry: Geometry, draft: Draft) -> list[str]:
    asked = draft.speculation
    notes = []
    if draft.groups:
        notes.append(
            f"speculative decoding ({asked.method}) caches {many(draft.layers, 'layer')} more in every tier "
            f"({draft.source})"
        )
    if asked.method in DROPS_LAST_BLOCK:
        notes.append(
            f"with method {asked.method} vLLM computes the last block of each hit again, "
            f"{count(geometry.block_tokens)} tokens, whose hidden states the draft needs"
        )
    return notes
