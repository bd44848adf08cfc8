"""From a model's shape to bytes: what one token, and one cached prefix, cost on a rank and in a tier.

How vLLM counts, which this file follows:
- A block of a tier is a block of the device's pool, all ranks (v1/kv_offload/cpu/spec.py:
  worker_kv_bytes_per_block x world_size; the ranks' equal MLA pages are stored once: replicated_layout).
  How wide that is the KV cache groups say (kv_groups.py).
- A group of sliding-window or state layers stores only the blocks that a hit at the prompt's end needs
  (config/cache.py, prefix_cache_retention_interval 0; v1/core/single_type_kv_cache_manager.py,
  reachable_block_mask). So a token costs the groups that keep every token, and each cached prefix its
  windows and states once.
- A connector that cannot do that makes vLLM keep every token in every layer (config/vllm.py,
  disable_hybrid_kv_cache_manager).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.engine import Device
from kvtier_operator.api.spec.gpu import Architecture
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.arguments.speculation import DROPS_LAST_BLOCK
from kvtier_operator.planning.backends import traits_of
from kvtier_operator.planning.backends.engine_image import engine_minor
from kvtier_operator.planning.kv_cache.sizing import (
    KVCost,
    Sizing,
    explain_gpu_differences,
    explain_token_bytes,
    name_partial_layers,
    turns_off_for_chunks,
    why_full,
)
from kvtier_operator.planning.kv_cache.split import Split, boundaries_apart, split_on
from kvtier_operator.planning.model_shape.block_tokens import (
    Attention,
    BlockChoice,
    attention_of,
    choose_block,
)
from kvtier_operator.planning.model_shape.config.overrides import with_option_named, with_overrides
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.model_shape.layers.draft import (
    Draft,
    must_not_be_a_draft,
    plan_draft,
    with_draft,
)
from kvtier_operator.planning.model_shape.resolve import resolve_shape
from kvtier_operator.planning.model_shape.shape import LayerGroup, LayerKind, ModelShape, takes_media
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.units import ceil_div, count, many, size

_EXPORTS_STATES: Final = 33
"""The first minor that exports states inside a prefill."""


def kv_geometry(shape: ModelShape, spec: Spec, minor: int | None) -> Geometry:
    """What one token of this model costs in this engine and, through its backend, in a tier.

    Args:
        shape: The model's.
        spec: What is wanted.
        minor: Of vLLM; None if it is not known.

    Raises:
        InvalidInputError: No layer keeps tokens, or vLLM finds no block for all of them.
    """
    shape = boundaries_apart(shape, spec.engine)
    split = Split.of(shape, spec.engine)
    if spec.engine.architecture:
        split = split_on(spec.engine.architecture, split, shape)
    if shape.bytes_per_token is not None:
        return _of_sum_alone(shape, shape.bytes_per_token, spec, split)
    layers = _managed_groups(shape, spec)
    if not any(layer.kind is not LayerKind.STATE for layer in layers):
        state_bytes = sum(layer.layers * split.state_bytes(layer, 0) * split.ranks for layer in layers)
        of = f" ({size(state_bytes)} a sequence)" if state_bytes else ""
        raise InvalidInputError(
            shape.source,
            Problem(
                "spec.model.name",
                f"every layer keeps one state of a whole sequence{of} and none keeps its tokens; vLLM "
                "caches no prefixes of such a model, so a tier has nothing to keep; serve it without a "
                "KVCacheTier",
            ),
        )
    attention = _attention(shape, spec)
    choice = choose_block(spec.engine, attention, split.dtype)
    sizing = Sizing(shape, layers, spec, split)
    steps = _steps(shape, spec, minor)
    cost = sizing.cost(choice.tokens, steps[0] if spec.engine.device is Device.GPU else 1)
    on_gpus = _on_gpus(sizing, choice, steps)
    partial = tuple(layer for layer in layers if _is_partial(layer, layers))
    per_prefix = cost.prefix_bytes * split.copies
    notes = list(shape.notes)
    if partial:
        every = sum(
            layer.layers * (split.token_bytes(layer) + layer.index_bytes) * split.copies for layer in layers
        )
        kinds = " and ".join(name_partial_layers(layer, split, shape.draft_tokens) for layer in partial)
        notes.append(
            f"{kinds} keep no tokens in a tier: a cached prefix takes {size(per_prefix)} beside its tokens "
            f"({count(every)} B a token if every attention layer kept all of them)"
        )
        notes.append(
            "a hybrid model's prefix is reused up to where an earlier prompt ended or two prompts parted, "
            "not at every block"
        )
    elif any(group.kind is LayerKind.SLIDING for group in shape.groups):
        notes.append(why_full(shape, spec))
    notes += _explain_gpu_choices(sizing, choice, cost, on_gpus)
    return Geometry(
        shape=replace(shape, groups=_merge_alike(shape.groups)),
        cache_dtype=split.dtype,
        kv_bytes_per_token=cost.token_bytes * split.copies,
        kv_bytes_per_token_per_rank=cost.token_bytes,
        weights_bytes=_weights_bytes(shape, spec),
        experts_bytes=_experts_bytes(shape, spec),
        how=_how(layers, cost, split),
        notes=tuple(notes),
        attention=attention,
        bytes_per_prefix=per_prefix,
        block_tokens=cost.block_tokens,
        block_bytes=cost.groups.block_bytes,
        group_block_tokens=tuple(group.block_tokens for group in cost.groups.groups),
        kv_bytes_per_token_by_gpu=_values(
            cost.token_bytes * split.copies for costs in on_gpus.values() for cost in costs
        ),
        block_tokens_by_gpu=_values(cost.block_tokens for costs in on_gpus.values() for cost in costs),
        stored_once=split.stored_once,
    )


def _attention(shape: ModelShape, spec: Spec) -> Attention:
    images = shape.images_both_ways and takes_media(spec.engine.extra_args, shape)
    return attention_of(shape.groups, images_both_ways=images)


def _weights_bytes(shape: ModelShape, spec: Spec) -> int | None:
    return spec.model.weights.bytes if spec.model.weights else shape.weights_bytes


def _experts_bytes(shape: ModelShape, spec: Spec) -> int | None:
    weights_bytes = _weights_bytes(shape, spec)
    return None if weights_bytes is None or shape.experts is None else shape.experts.within(weights_bytes)


def _of_sum_alone(shape: ModelShape, bytes_per_token: int, spec: Spec, split: Split) -> Geometry:
    """Of a model that only the resource describes, by one number."""
    tokens = choose_block(spec.engine, attention_of(shape.groups), split.dtype).tokens
    return Geometry(
        shape=shape,
        cache_dtype=split.dtype,
        kv_bytes_per_token=bytes_per_token,
        kv_bytes_per_token_per_rank=ceil_div(bytes_per_token, split.ranks),
        weights_bytes=_weights_bytes(shape, spec),
        experts_bytes=_experts_bytes(shape, spec),
        how=f"{count(bytes_per_token)} B as spec.model.geometry.kvBytesPerToken gives it",
        notes=shape.notes,
        block_tokens=tokens,
        group_block_tokens=(tokens,),
    )


def _managed_groups(shape: ModelShape, spec: Spec) -> tuple[LayerGroup, ...]:
    """The layers as vLLM's cache manager takes them: all as full attention where it is no hybrid one."""
    hybrid_manager = (
        traits_of(spec.backend).no_hybrid_manager is None
        and not turns_off_for_chunks(spec, shape)
        and not spec.engine.extra_args.is_on("--disable-hybrid-kv-cache-manager")
    )
    if hybrid_manager or not any(group.kind.keeps_tokens for group in shape.groups):
        return _merge_alike(shape.groups)
    return _merge_alike(
        replace(group, kind=LayerKind.FULL, window_tokens=0) if group.kind is LayerKind.SLIDING else group
        for group in shape.groups
    )


def _merge_alike(groups: Iterable[LayerGroup]) -> tuple[LayerGroup, ...]:
    """Layers of the same shape together, those of a draft among the model's own."""
    layers: dict[LayerGroup, int] = {}
    for group in groups:
        alike = replace(group, layers=0, draft=False)
        layers[alike] = layers.get(alike, 0) + group.layers
    return tuple(replace(group, layers=number) for group, number in layers.items())


def _is_partial(layer: LayerGroup, layers: tuple[LayerGroup, ...]) -> bool:
    """Whether a layer keeps a window or a state for each prefix, while others keep every token."""
    if layer.kind is LayerKind.SLIDING:
        return any(other.kind.keeps_tokens for other in layers)
    return layer.kind is LayerKind.STATE


def _steps(shape: ModelShape, spec: Spec, minor: int | None) -> tuple[int, ...]:
    """What a raised block is a multiple of, in this minor of vLLM, or in 0.32 and 0.33."""
    if _prefills_without_export(spec) or spec.engine.architecture is Architecture.AMPERE:
        return (1,)
    if minor is None:
        return tuple(sorted({1, shape.state_alignment_tokens}))
    return (shape.state_alignment_tokens if minor >= _EXPORTS_STATES else 1,)


_PREFILL: Final = "gdn_prefill_backend"
_EXPORTING: Final = frozenset({"auto", "flashinfer"})


def _prefills_without_export(spec: Spec) -> bool:
    """Whether Gated DeltaNet is told to prefill with other kernels than FlashInfer's.

    Source: vLLM 0.33, layers/mamba/gdn/qwen_gdn_linear_attn.py, _resolve_gdn_prefill_backend.
    """
    arguments = spec.engine.extra_args
    named = arguments.value("--gdn-prefill-backend")
    named = named or arguments.json_object("--additional-config").get(_PREFILL)
    return str(named or "auto").strip().lower() not in _EXPORTING


def _on_gpus(
    sizing: Sizing, choice: BlockChoice, steps: tuple[int, ...]
) -> dict[Architecture, tuple[KVCost, ...]]:
    """What the model costs on each GPU, with either of vLLM's minors where those differ."""
    costs = {}
    for gpu, tokens in choice.by_gpu.items():
        on_it = replace(sizing, split=split_on(gpu, sizing.split, sizing.shape))
        costs[gpu] = tuple(
            on_it.cost(choice.tokens if choice.is_set else tokens, step)
            for step in (steps if gpu is not Architecture.AMPERE else (1,))
        )
    return costs


def _explain_gpu_choices(
    sizing: Sizing, choice: BlockChoice, cost: KVCost, on_gpus: Mapping[Architecture, tuple[KVCost, ...]]
) -> list[str]:
    """What a plan cannot know, with the range, in words."""
    copies = sizing.split.copies
    tokens = {gpu: [cost.token_bytes * copies for cost in costs] for gpu, costs in on_gpus.items()}
    blocks = {gpu: [cost.block_tokens for cost in costs] for gpu, costs in on_gpus.items()}
    raised = cost.block_tokens != choice.tokens
    then = "" if raised else f"; spec.engine.blockSize {choice.fast_multiple} suits all of them"
    return [
        *explain_gpu_differences(
            tokens, "how sparse MLA is kept", f"{count(cost.token_bytes * copies)} B a token"
        ),
        *explain_gpu_differences(blocks, "the tokens of a block", f"{count(cost.block_tokens)}", then),
    ]


def _values(values: Iterable[int]) -> tuple[int, ...]:
    """The values, the least first, where there are several; nothing where all are one."""
    distinct = tuple(sorted(set(values)))
    return distinct if len(distinct) > 1 else ()


def _how(layers: tuple[LayerGroup, ...], cost: KVCost, split: Split) -> str:
    slots = cost.groups.slots or 1
    whole = [layer for layer in layers if not _is_partial(layer, layers)]
    terms = [explain_token_bytes(layer, ceil_div(layer.layers, slots) * slots, split) for layer in whole]
    own_bytes = sum(
        ceil_div(layer.layers, slots) * slots * (split.token_bytes(layer) + layer.index_bytes)
        for layer in whole
    )
    wider = cost.token_bytes - own_bytes
    padding = [
        f"{count(wider * split.copies)} B of padding, to blocks as wide as all groups and kernels need"
    ]
    return " + ".join(terms + (padding if wider > 0 else []))


def _with_weights(geometry: Geometry, draft: Draft, ranks: int) -> Geometry:
    """The geometry of a model and its draft's layers with the draft's weights, and what only a sum tells."""
    extra = draft.bytes_per_token
    weights = geometry.weights_bytes
    return replace(
        geometry,
        kv_bytes_per_token=geometry.kv_bytes_per_token + extra,
        kv_bytes_per_token_per_rank=geometry.kv_bytes_per_token_per_rank + ceil_div(extra, ranks),
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


def resolve_geometry(spec: Spec, observed: Observed) -> Geometry:
    """KV geometry of one engine, from the first of: the resource, the model's config.json, the catalogue.

    Layers that draft tokens are among its layers.

    Raises:
        InvalidInputError: Nothing knows the model, or what is known cannot be sized.
    """
    must_not_be_a_draft(observed)
    try:
        observed = with_overrides(spec, observed)
        shape = resolve_shape(spec.model, observed)
    except InvalidInputError as error:
        raise with_option_named(error, spec) from error
    draft = plan_draft(spec, shape, observed)
    geometry = kv_geometry(with_draft(shape, draft), spec, engine_minor(spec, observed))
    return geometry if draft is None else _with_weights(geometry, draft, spec.engine.tensor_parallel_size)
