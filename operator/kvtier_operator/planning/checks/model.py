"""Whether the model's class, its heads, its layers and its length are ones that the engine can serve."""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_common.tier import Tier
from kvtier_operator.planning.arguments.batches import STEP
from kvtier_operator.planning.backends.traits import NoHybridManager
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.checks.environment import may_be_on
from kvtier_operator.planning.model_shape.config.overrides import OPTION
from kvtier_operator.planning.model_shape.from_config import has_other_caches
from kvtier_operator.planning.model_shape.shape import LayerKind
from kvtier_operator.planning.model_shape.unknown import MEASURED
from kvtier_operator.planning.tiers.capacity import differs
from kvtier_operator.planning.units import count, many, size
from kvtier_operator.planning.verdict import CheckResult


@check("spec.model.name")
def architecture_known(parts: CheckInput) -> CheckResult:
    """What vLLM has no class of it looks for in the Transformers library, whose version only an image has."""
    if name := parts.geometry.shape.unknown_architecture:
        return architecture_known.warn(
            "ArchitectureUnknown",
            f"vLLM 0.32 and 0.33 have no class of {name}: they serve it where the Transformers library or "
            "the model's own code has one, and start nowhere else; look at `architectures` of config.json",
            by_itself="plans what config.json says",
        )
    return architecture_known.passed("vLLM has a class of the model, or the resource names none")


_LEAST_OF_SUCH_BYTES: Final = 32 << 10
"""A sixth of what is seen of DeepSeek V4: no model card's figure of one is as much, and no tier's is less."""


@check("spec.model.geometry.kvBytesPerToken")
def cache_shapes(parts: CheckInput) -> CheckResult:
    """Such caches have blocks as wide as their widest group, on every rank: many times a token's own bytes.

    Of DeepSeek V4 users found 187 to 195 KiB a token in a tier with 2 ranks, and 55 KB on the device.
    """
    geometry, name = parts.spec.model.geometry, parts.spec.model.name
    if geometry is None or geometry.kv_bytes_per_token is None or not has_other_caches(name):
        return cache_shapes.passed("no model that is known for caches of different shapes")
    observed = parts.observed.engine.by_tier.get(Tier.CPU) if parts.observed.engine else None
    if observed is not None and not differs(observed, parts.tiers.cpu.tokens):
        return cache_shapes.passed(f"a running engine holds {count(observed)} tokens, about as planned")
    too_little = geometry.kv_bytes_per_token < _LEAST_OF_SUCH_BYTES
    return cache_shapes.warn(
        "CacheFarTooSmall" if too_little else "CacheNotASum",
        f"layers of {name} keep caches of different shapes, so a tier stores many times the bytes that its "
        f"model card has for a token ({MEASURED}), and {size(geometry.kv_bytes_per_token)} "
        f"{'is likely far too little' if too_little else 'must be what it stores'}, all ranks together; set "
        "it to status.tiers.cpu.bytes / tokens once an engine runs (Observed)",
        by_itself=f"plans {count(parts.tiers.cpu.tokens)} tokens in the CPU tier, and has the picker follow "
        "what running engines say",
        weight=100 if too_little else 50,
    )


@check("spec.engine.tensorParallelSize")
def attention_heads(parts: CheckInput) -> CheckResult:
    """Other splits are refused by vLLM.

    Query heads must be a multiple of the ranks (vLLM, config/model.py, verify_with_parallel_config); KV
    heads a multiple of the ranks, or the ranks a multiple of the KV heads, which are then replicated
    (models/llama.py, LlamaAttention). A latent (MLA) is on every rank whole.
    """
    ranks = parts.spec.engine.tensor_parallel_size
    query_heads = parts.geometry.shape.attention_heads
    if query_heads and query_heads % ranks:
        return attention_heads.reject(
            "HeadsNotDivisible",
            f"{query_heads} attention heads cannot be shared out over {ranks} ranks; "
            f"use one of {_divisors(query_heads)}",
        )
    return _groups_apart(parts, ranks) or _judge_copies(parts, ranks)


def _groups_apart(parts: CheckInput, ranks: int) -> CheckResult | None:
    """The first group of layers that vLLM refuses to share out."""
    for group in parts.geometry.groups:
        apart = [heads for heads in group.state.heads if heads % ranks] if group.state else []
        if apart:
            return attention_heads.reject(
                "StateNotDivisible",
                f"{apart[0]} heads or groups of a linear-attention state cannot be shared out over {ranks} "
                f"ranks; use one of {_divisors(apart[0])}",
            )
        if group.kind in {LayerKind.MLA, LayerKind.STATE}:
            continue
        if group.kv_heads % ranks and ranks % group.kv_heads:
            return attention_heads.reject(
                "KVHeadsNotDivisible",
                f"{many(group.kv_heads, 'KV head')} and {ranks} ranks do not divide each other; "
                f"use one of {_divisors(group.kv_heads)} or a multiple of {group.kv_heads}",
            )
        if group.kv_heads < ranks and not parts.geometry.shape.kv_heads_replicated:
            return attention_heads.reject(
                "KVHeadsNotReplicated",
                f"{many(group.kv_heads, 'KV head')} on {ranks} ranks: vLLM copies none of this model; "
                f"use {many(group.kv_heads, 'rank')} or fewer",
            )
    return None


def _judge_copies(parts: CheckInput, ranks: int) -> CheckResult:
    for group in parts.geometry.groups:
        if group.kind not in {LayerKind.MLA, LayerKind.STATE} and group.kv_heads < ranks:
            copies = ranks // group.kv_heads
            return attention_heads.warn(
                "KVHeadsReplicated",
                f"{many(group.kv_heads, 'KV head')} on {ranks} ranks: each is kept {copies} times, so every "
                f"tier holds {copies} times fewer tokens; {many(group.kv_heads, 'rank')} would keep each "
                "once",
                by_itself="counts the copies in all sizes",
            )
    return attention_heads.passed(f"the model's heads can be shared out over {many(ranks, 'rank')}")


def _divisors(heads: int) -> str:
    return ", ".join(str(number) for number in range(1, min(heads, 64) + 1) if heads % number == 0)


_SMALLEST_STEP_TOKENS: Final = 2048
"""Of vLLM's defaults, which depend on the GPU (engine/arg_utils.py, get_batch_defaults)."""


@check("spec.backend")
def hybrid_models(parts: CheckInput) -> CheckResult:
    """Some backends go without vLLM's cache manager for such models, some ask for steps of whole blocks."""
    without = parts.traits.no_hybrid_manager
    if without and parts.geometry.hybrid and parts.geometry.keeps(LayerKind.SLIDING, LayerKind.STATE):
        return _without_manager(parts, without)
    if parts.traits.whole_blocks and parts.geometry.keeps_states:
        return _step_of_blocks(parts)
    return hybrid_models.passed("the backend serves this model's layers")


def _without_manager(parts: CheckInput, without: NoHybridManager) -> CheckResult:
    """VLLM turns its hybrid cache manager off (config/vllm.py, SupportsHMA).

    Linear-attention models then fail at start; sliding-window layers keep every token instead of a window.
    """
    if parts.geometry.keeps_states:
        return hybrid_models.reject(
            "HybridModelNotSupported",
            f"{parts.traits.title} cannot serve models with linear-attention layers: vLLM stops at "
            f"start; set spec.backend to {without.for_states}",
        )
    return hybrid_models.warn(
        "WindowsKeptInFull",
        f"{parts.traits.title} keeps every token of sliding-window layers, on the device too: fewer "
        f"tokens fit; spec.backend {without.for_windows}",
        by_itself="counts all of them in the sizes",
    )


def _step_of_blocks(parts: CheckInput) -> CheckResult:
    """A step must compute a whole block."""
    block = parts.geometry.block_tokens
    step = parts.spec.engine.extra_args.number(STEP)
    if step is not None and step < block:
        return hybrid_models.reject(
            "StepBelowBlock",
            f"{STEP} {step} is less than a block of this model, {count(block)} tokens, and "
            f"{parts.traits.project}'s connector refuses to start: give {count(block)} or more",
            field=parts.spec.engine.extra_args.field_path(STEP),
        )
    if step is None and block > _SMALLEST_STEP_TOKENS:
        return hybrid_models.warn(
            "StepMayBeBelowBlock",
            f"a block of this model has {count(block)} tokens, and {parts.traits.project}'s connector does "
            f"not start where a step takes fewer: give {STEP} {block} or more in spec.engine.extraArgs "
            f"(vLLM's default is {count(_SMALLEST_STEP_TOKENS)} on smaller GPUs)",
            weight=110,
        )
    return hybrid_models.passed(f"chunks of {count(parts.backend.tokens_per_chunk)} tokens are whole blocks")


@check("spec.model.servedNames")
def served_names(parts: CheckInput) -> CheckResult:
    """A picker's prefixes begin with the name that a request has; what engines tell has the first name."""
    first, *others = parts.spec.model.names
    if not others:
        return served_names.passed(f"clients ask for {first}")
    if parts.spec.router.kv_events:
        why = f"which know the engines' blocks by {first} alone: requests by another name are spread by load"
    else:
        why = "which take each for a model of its own: what was asked by one is not looked for by another"
    return served_names.warn(
        "NamesCountedApart",
        f"{many(len(others) + 1, 'name')} are one model to engines and their tiers, and not to pickers, "
        f"{why}; have clients that share prompts ask by one name",
    )


_SCALING: Final = frozenset({"rope_scaling", "rope_parameters"})


@check("spec.engine.maxModelLen")
def overridden_length(parts: CheckInput) -> CheckResult:
    """With scaled positions vLLM works out a longest sequence of its own (config/model.py)."""
    engine = parts.spec.engine
    scaled = sorted(_names(engine.extra_args.json_object(OPTION)) & _SCALING)
    if not scaled or engine.max_model_len is not None:
        return overridden_length.passed("the longest sequence is known")
    longest = parts.geometry.shape.max_position_tokens
    return overridden_length.warn(
        "SequenceNotKnown",
        f"{scaled[0]} in {OPTION} changes the longest sequence, which is planned with "
        f"{'nothing' if longest is None else f'{longest:,} tokens'}: set it to the one that you want",
    )


def _names(overrides: Mapping[str, Any]) -> set[str]:
    return set(overrides).union(
        *(_names(value) for value in overrides.values() if isinstance(value, Mapping))
    )


_ALLOWED_BY: Final = "VLLM_ALLOW_LONG_MAX_MODEL_LEN"


@check("spec.engine.maxModelLen")
def model_length(parts: CheckInput) -> CheckResult:
    """Beyond what config.json says vLLM ends at start (config/model.py, _get_and_verify_max_len).

    Where only the resource describes the model, nothing tells how long its sequences may be.
    """
    asked, shape = parts.spec.engine.max_model_len, parts.geometry.shape
    most = shape.most_position_tokens
    if asked is None or most is None or asked <= most:
        return model_length.passed("no longer than the model's own")
    if may_be_on(parts, _ALLOWED_BY):
        return model_length.passed(f"{count(asked)} tokens, by {_ALLOWED_BY}")
    return model_length.reject(
        "LongerThanModel",
        f"{count(asked)} tokens are more than the {count(most)} of {shape.source}, and vLLM ends at "
        f"start: set it to at most {count(most)}; or, for a model whose positions can be scaled, add its "
        f'rope_parameters and "max_position_embeddings": {asked} as {OPTION} to spec.engine.extraArgs',
    )
