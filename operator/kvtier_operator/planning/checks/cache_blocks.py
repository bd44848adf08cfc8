"""Whether the engine's blocks are ones that tiers can keep and prompts can hit."""

import math
from typing import Final

from kvtier_operator.api.spec.command_line import FIELD
from kvtier_operator.api.spec.engine import Device
from kvtier_operator.planning.backends.kept_states import EVERYWHERE, RETENTION, kept_bytes, retention_tokens
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.checks.refused_words import refused_words
from kvtier_operator.planning.kv_cache.split import packs_keys_and_values
from kvtier_operator.planning.model_shape.block_tokens import choose_block
from kvtier_operator.planning.model_shape.shape import LayerKind
from kvtier_operator.planning.tiers.capacity import prefix_tokens
from kvtier_operator.planning.units import count, round_up, size
from kvtier_operator.planning.verdict import CheckResult

_OPTION: Final = "--prefix-caching-hash-algo"
_DEFAULT: Final = "sha256"
_CRYPTOGRAPHIC: Final = (_DEFAULT, "sha256_cbor")
"""Of what vLLM 0.32 and 0.33 take, the others are xxhash and xxhash_cbor (config/cache.py)."""


@check(FIELD)
def block_hash(parts: CheckInput) -> CheckResult:
    """Who finds a second prompt with a block's hash has the tier answer that prompt with the first one's KV.

    All clients of a model share its tiers, and what is on disk is found by later starts, too. vLLM makes up
    for a weak hash with a secret seed, but the pods of one model have the same one, which is no secret.
    """
    spec = parts.spec
    algorithm, argument = (
        spec.engine.extra_args.value(_OPTION) or _DEFAULT,
        spec.engine.extra_args.last(_OPTION),
    )
    if argument and {argument.position, argument.position + 1} & refused_words(parts).positions:
        return block_hash.passed("vLLM does not start with what is given", reason="Refused")
    if algorithm in _CRYPTOGRAPHIC:
        return block_hash.passed(f"blocks are named by {algorithm}")
    where = "its tiers, the disk's after a restart too," if spec.tiers.disk else "its tier"
    if spec.tiers.remote:
        where = "its tiers, the store with all who write into it too,"
    return block_hash.warn(
        "BlockHashNotCryptographic",
        f"{_OPTION} {algorithm}: a client can make a prompt whose blocks have the names of "
        f"another's, and all clients of the model share {where} so that one is answered from the other's KV "
        f"cache; where they do not trust each other set {_DEFAULT}, vLLM's default, or {_CRYPTOGRAPHIC[1]}",
        by_itself="passes it on",
        field=spec.engine.extra_args.field_path(_OPTION),
        weight=30,
    )


@check("spec.engine.blockSize")
def block_size(parts: CheckInput) -> CheckResult:
    """Each attention backend of vLLM takes multiples of some block; one that takes none is never chosen."""
    engine, geometry = parts.spec.engine, parts.geometry
    choice = choose_block(engine, geometry.attention, geometry.cache_dtype)
    if engine.device is Device.CPU and geometry.mla:
        return block_size.warn(
            "PrefixCachingOff",
            "vLLM turns prefix caching off for MLA models on a CPU without AMX (platforms/cpu.py): "
            "the tiers would stay empty; use a model with KV heads, or a CPU with AMX",
            field="spec.engine.device",
            weight=190,
        )
    if choice.tokens % choice.multiple:
        where = "CPU attention" if engine.device is Device.CPU else f"attention over {geometry.attention}"
        return block_size.reject(
            "BlockSizeNotSupported",
            f"{choice.tokens} tokens: vLLM's {where} needs a multiple of {choice.multiple}; "
            f"set it to {round_up(choice.tokens, choice.multiple)}, or leave it out, and vLLM chooses",
        )
    if geometry.block_tokens != choice.tokens:
        packed = packs_keys_and_values(geometry.cache_dtype) and any(
            group.own_dtype for group in geometry.groups
        )
        why = (
            "of packed elements covers one that is not" if packed else "holds a whole linear-attention state"
        )
        return block_size.warn(
            "BlockSizeRaised",
            f"vLLM raises {choice.tokens} to {geometry.block_tokens} tokens, so that a block {why}; shorter "
            "prefixes are not cached, whatever is set",
            by_itself="sizes tiers and picker by it, and goes by what a running engine says",
        )
    if choice.slow_on:
        return block_size.warn(
            "SlowAttention",
            f"{choice.tokens} tokens: the fast kernels on {' and '.join(choice.slow_on)} do not take such a "
            "block, so vLLM falls to a slow one there; leave it out, and vLLM chooses, or set it to "
            f"{round_up(choice.tokens, choice.fast_multiple)}",
        )
    return block_size.passed(f"{choice.tokens} tokens suit device {engine.device}")


@check("spec.engine.maxModelLen")
def prefix_fills_block(parts: CheckInput) -> CheckResult:
    """VLLM finds whole blocks, and computes at least one token behind them (vLLM #48401)."""
    geometry = parts.geometry
    longest = geometry.longest_tokens(parts.spec.engine)
    block_tokens = geometry.block_tokens
    blocks = (block_tokens, *geometry.block_tokens_by_gpu)
    least, most = min(blocks), max(blocks)
    if longest is None or longest > most:
        return prefix_fills_block.passed(f"a prefix is found from {count(block_tokens)} tokens on")
    if longest > least:
        return prefix_fills_block.warn(
            "NothingMayBeFound",
            f"{count(longest)} tokens: a block has {count(least)} or {count(most)}, by the GPU and vLLM's "
            "minor, and where no prompt fills one nothing is ever found again; raise it above "
            f"{count(most)}",
        )
    state = " (a whole linear-attention state)" if geometry.bytes_per_prefix else ""
    return prefix_fills_block.reject(
        "NothingCanBeFound",
        f"{count(longest)} tokens, and a block has {count(least)}{state}: no prompt fills one, so "
        f"nothing is ever found again, in a tier or on the device; raise it above {count(most)}",
    )


_STEP_TOKENS: Final = 64
"""What vLLM rounds a state's block up to at most, of itself: all GPUs agree on multiples of it."""


@check("spec.engine.blockSize", name="lmcache-chunk")
def whole_chunks(parts: CheckInput) -> CheckResult:
    """The backend's connector starts only if the chunk is a multiple of the block."""
    if not parts.traits.whole_blocks:
        return whole_chunks.passed("another backend")
    chunk = parts.backend.tokens_per_chunk
    blocks = parts.geometry.block_tokens_by_gpu
    if all(chunk % block == 0 for block in blocks):
        return whole_chunks.passed(f"chunks of {count(chunk)} tokens are whole blocks")
    either = " or ".join(map(count, blocks))
    return whole_chunks.warn(
        "ChunkMayNotBeBlocks",
        f"vLLM takes blocks of {either} tokens, by its version and the GPU, and "
        f"{parts.traits.project}'s connector does not start unless a chunk is whole blocks: set it to "
        f"{_STEP_TOKENS}, with which all agree",
        by_itself=f"starts the server with chunks of {count(chunk)}",
        weight=100,
    )


OFF: Final = "--disable-hybrid-kv-cache-manager"
_ON: Final = OFF.replace("--", "--no-", 1)


@check(FIELD)
def hybrid_manager(parts: CheckInput) -> CheckResult:
    """Left alone, vLLM turns it off where it must (config/vllm.py, VllmConfig.__post_init__)."""
    off = parts.spec.engine.extra_args.switch(OFF)
    without = parts.traits.no_hybrid_manager is not None
    place = parts.spec.engine.extra_args.field_path(OFF, _ON)
    if off is False and without:
        return hybrid_manager.reject(
            "HybridManagerNotSupported",
            f"{_ON}: {parts.traits.title} cannot work with vLLM's hybrid cache "
            "manager, and vLLM stops at start; remove it",
            field=place,
        )
    if not off or without or not parts.geometry.hybrid:
        return hybrid_manager.passed("vLLM decides on its hybrid cache manager")
    if not parts.geometry.keeps(LayerKind.SLIDING, LayerKind.STATE):
        return hybrid_manager.passed(f"{OFF}: every layer keeps every token with or without the manager")
    if parts.geometry.keeps_states:
        return hybrid_manager.reject(
            "HybridManagerNeeded",
            f"{OFF}: a model with linear-attention layers does not start without vLLM's hybrid cache "
            "manager; remove it",
            field=place,
        )
    return hybrid_manager.warn(
        "WindowsKeptInFull",
        f"{OFF}: sliding-window layers keep every token, on the device too, so fewer tokens fit; without it "
        "they keep their windows only",
        field=place,
    )


@check(FIELD)
def retention_interval(parts: CheckInput) -> CheckResult:
    """The plan counts windows and states as often as they are kept; vLLM's own interval of 0 is once.

    Source: vllm/v1/core/kv_cache_coordinator.py (_validate_prefix_cache_retention_interval) and
    .../kv_connector/v1/offloading/scheduler.py (SchedulerOffloadConfig.from_spec), 0.32 and 0.33.
    """
    interval = parts.spec.engine.extra_args.value(RETENTION)
    tokens = parts.spec.engine.extra_args.number(RETENTION)
    if interval is None or tokens == 0:
        return retention_interval.passed("windows and states are kept where prompts end or part")
    step, place = _step(parts), parts.spec.engine.extra_args.field_path(RETENTION)
    if interval in EVERYWHERE:
        return (
            _more(parts) if _is_sparse(parts) else retention_interval.passed("every layer keeps every token")
        )
    if tokens is None or tokens < 0:
        return retention_interval.reject(
            "RetentionIntervalNotSupported",
            f"{RETENTION} {interval}: vLLM takes a number of tokens, or None",
            field=place,
        )
    if not _is_sparse(parts):
        return retention_interval.reject(
            "RetentionIntervalNotSupported",
            f"{RETENTION} {interval}: every layer of this model keeps every token, and vLLM then takes 0 "
            "only; remove it",
            field=place,
        )
    if tokens % step:
        return retention_interval.reject(
            "RetentionIntervalNotSupported",
            f"{RETENTION} {interval}: vLLM takes multiples of {step} tokens only, a block and a chunk of the "
            f"tier; set it to {round_up(tokens, step)}, or remove it",
            field=place,
        )
    return _more(parts)


def _is_sparse(parts: CheckInput) -> bool:
    managed = parts.traits.no_hybrid_manager is None and not parts.spec.engine.extra_args.is_on(OFF)
    return parts.geometry.keeps_states or (parts.geometry.keeps(LayerKind.SLIDING) and managed)


def _step(parts: CheckInput) -> int:
    block = parts.geometry.block_tokens
    if not parts.traits.offloading:
        return block
    return math.lcm(block, parts.backend.tokens_per_chunk or block)


def _more(parts: CheckInput) -> CheckResult:
    spec, geometry = parts.spec, parts.geometry
    interval = retention_tokens(spec, geometry) or geometry.block_tokens
    tokens = prefix_tokens(spec, geometry) or 0
    return retention_interval.warn(
        "StatesKeptOften",
        f"windows and states are kept every {count(interval)} tokens: "
        f"{size(kept_bytes(tokens, spec, geometry))} of them for a prefix of {count(tokens)} tokens, where "
        f"vLLM's own interval of 0 keeps {size(geometry.bytes_per_prefix)}; remove it unless prompts part at "
        "such places",
        field=spec.engine.extra_args.field_path(RETENTION),
        by_itself="counts all of them in the tiers and for the picker: fewer prefixes fit",
    )
