"""Whether the device's cache and the tiers hold sequences, and whether the CPU tier is of use."""

from collections.abc import Sequence
from typing import Final

from kvtier_common.tier import Tier
from kvtier_operator.api.spec.engine import Device, EngineSpec
from kvtier_operator.api.spec.gpu import LARGEST, USUAL_NODE_GPUS
from kvtier_operator.api.spec.tiers import Ability, fields_of
from kvtier_operator.planning.backends.kept_states import kept_bytes
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.tiers.capacity import (
    ACTIVATION_RESERVE_BYTES,
    GPU_MEMORY_UTILIZATION,
    MEDIA_GIB,
    chunk_bytes,
    media_bytes,
    prefix_tokens,
    usable_bytes,
)
from kvtier_operator.planning.tiers.loading import Loading, loadings
from kvtier_operator.planning.units import count, each_of, many, round_up, size
from kvtier_operator.planning.verdict import CheckResult
from kvtier_operator.planning.weights.device_weights import (
    RankWeights,
    adapter_bytes,
    online_quantization,
    rank_weights,
)

_MAY_NOT_FIT: Final = "SequenceMayNotFit"
_STARTS: Final = "starts the engines, and EnginesReady has vLLM's words if they end"
_MOST_USED: Final = 0.95


def _gpu_field(engine: EngineSpec) -> str:
    return "spec.engine.gpu" if engine.gpu else "spec.engine.gpuMemory"


@check("spec.engine.kvCacheMemory", about_sizes=True)
def device_cache(parts: CheckInput) -> CheckResult:
    """With less, vLLM refuses to start (v1/core/kv_cache_utils.py, check_enough_kv_cache_memory).

    Weights alone are refused where they do not fit; what else a GPU holds is an estimate.
    """
    engine, gpu = parts.spec.engine, parts.tiers.gpu
    if (fault := _too_large_for_gpus(parts)) is not None:
        return device_cache.reject("NoGPUHolds", fault, field="spec.engine.tensorParallelSize")
    if gpu is None or gpu.bytes_per_rank == 0:
        return _by_weights(parts)
    longest = parts.geometry.longest_tokens(engine)
    tokens = gpu.held_tokens // engine.data_parallel_size
    if longest is None or tokens >= longest:
        return device_cache.passed(f"{count(tokens)} tokens on the device")
    needed = round_up(longest, parts.geometry.block_tokens) * parts.geometry.kv_bytes_per_token_per_rank
    message = (
        f"the device's cache holds {count(tokens)} tokens, the longest sequence has {count(longest)}: "
        "vLLM will not start; "
        + (f"set spec.engine.maxModelLen to at most {count(tokens)}, or " if tokens else "")
    )
    if engine.kv_cache_memory is None and engine.device is Device.GPU:
        beside = ACTIVATION_RESERVE_BYTES + needed
        return device_cache.warn(
            _MAY_NOT_FIT,
            f"by estimate, {message}{_ways_to_fit(parts, beside, _RAISE_RANKS)} until each rank has "
            f"{size(needed)}",
            by_itself=_STARTS,
            weight=180,
            field=_gpu_field(parts.spec.engine),
        )
    return device_cache.reject(
        "SequenceDoesNotFit", f"{message}set spec.engine.kvCacheMemory to at least {size(needed)} a rank"
    )


_RANKS: Final = (2, 4, 8, 16, 32, 64)


def _too_large_for_gpus(parts: CheckInput) -> str | None:
    """Why no GPU holds the weights and the cache that is asked for; None where one may.

    Of a named GPU `_by_weights` looks at the weights alone.
    """
    engine, geometry = parts.spec.engine, parts.geometry
    weights, cache = rank_weights(engine, geometry), engine.kv_cache_memory
    if engine.device is Device.CPU or weights is None or (engine.gpu_bytes and cache is None):
        return None
    # a cache of a given size is not bounded by the utilisation (vLLM, v1/worker/gpu_worker.py)
    share = 1 if cache else engine.gpu_memory_utilization or GPU_MEMORY_UTILIZATION
    room = int(share * (engine.gpu_bytes or LARGEST.memory_bytes)) - (cache.bytes if cache else 0)
    if weights.least_bytes < room:
        return None
    ways = ["lower spec.engine.kvCacheMemory"] if cache else []
    ways += [more] if (more := _more_ranks(parts, room)) else []
    largest = f"and the largest there is, {LARGEST}, has {size(LARGEST.memory_bytes)}"
    has = f"which has {size(engine.gpu_bytes)}" if engine.gpu_bytes else largest
    return (
        f"{_weights_of(parts)} take {size(weights.least_bytes)}"
        f"{f' beside a KV cache of {cache}' if cache else ''} on {each_of(parts.ranks, 'GPU')}, {has}; "
        f"{', or '.join(ways or [_SMALLER])}"
    )


def _least_bytes(parts: CheckInput, ranks: int) -> int:
    """The least that one GPU holds of the weights with so many ranks."""
    engine = parts.spec.engine.model_copy(update={"tensor_parallel_size": ranks})
    weights = rank_weights(engine, parts.geometry)
    return weights.least_bytes if weights else 0


def _by_weights(parts: CheckInput) -> CheckResult:
    """Where no tokens are planned, whether the weights leave room for any."""
    usable, weights = usable_bytes(parts.spec.engine), rank_weights(parts.spec.engine, parts.geometry)
    if usable is None or weights is None:
        return device_cache.passed(
            "the device's own cache is not known before the engine runs", reason="Unknown"
        )
    held = _weights_text(parts, weights)
    if usable <= weights.least_bytes:
        return device_cache.reject(
            "NoRoomForCache",
            f"{held}, of which vLLM takes {size(usable)}, and leave nothing for a KV cache; "
            f"{_ways_to_fit(parts, 0, _more_ranks(parts, usable))}",
            field=_gpu_field(parts.spec.engine),
        )
    if not weights.known:
        return device_cache.passed(f"{held}, which a plan cannot know: the engine says it", reason="Unknown")
    if adapter_bytes(parts.spec, parts.geometry) is None:
        return device_cache.passed(
            f"{held}; what LoRA adapters take of the rest this model's sizes do not tell: the engine says it",
            reason="Unknown",
        )
    media = media_bytes(parts.spec.engine, parts.geometry)
    beside_bytes = ACTIVATION_RESERVE_BYTES + media
    left = size(max(0, usable - weights.most_bytes - media))
    more_ranks = _more_ranks(parts, usable - beside_bytes)
    beside = f" beside {size(media)} of {MEDIA_GIB}" if media else ""
    return device_cache.warn(
        _MAY_NOT_FIT,
        f"by estimate, {held}{beside}, and leave {left} of what vLLM takes, no more than the "
        f"{size(ACTIVATION_RESERVE_BYTES)} planned for activations: vLLM may not start; "
        f"{_ways_to_fit(parts, beside_bytes, more_ranks)}",
        by_itself=_STARTS,
        weight=180,
        field=_gpu_field(parts.spec.engine),
    )


def _weights_text(parts: CheckInput, weights: RankWeights) -> str:
    engine = parts.spec.engine
    least, most = size(weights.least_bytes), size(weights.most_bytes)
    gpus = each_of(parts.ranks, "GPU")
    method = online_quantization(engine, parts.geometry)
    return (
        f"{_weights_of(parts)}{f', {method} on the GPU,' if method else ''} "
        f"take {least if weights.known else f'{least} to {most}'} on {gpus}"
        f" of {size(engine.gpu_bytes or 0)}"
    )


def _weights_of(parts: CheckInput) -> str:
    """The weights and their size, unless what is said next is the same size on one GPU."""
    weights, method = (
        parts.geometry.weights_bytes or 0,
        online_quantization(parts.spec.engine, parts.geometry),
    )
    return "the weights" if parts.ranks == 1 and not method else f"weights of {size(weights)}"


_SMALLER: Final = "serve a smaller checkpoint"
_RAISE_RANKS: Final = "raise spec.engine.tensorParallelSize"


def _ways_to_fit(parts: CheckInput, beside_bytes: int, more_ranks: str) -> str:
    """What gives a cache more room, the plainest first; `until` may follow.

    Args:
        parts: Of the plan.
        beside_bytes: What must fit beside the weights for one of them to be enough.
        more_ranks: What to do about the ranks.
    """
    engine = parts.spec.engine
    used, weights = engine.gpu_memory_utilization, rank_weights(engine, parts.geometry)
    ways = [f"{'correct' if parts.spec.model.weights else 'set'} spec.model.weights if they are smaller"]
    least_bytes = (weights.least_bytes if weights else 0) + beside_bytes
    if least_bytes < (engine.gpu_bytes or least_bytes + 1):
        if used is None:
            ways.append(f"set spec.engine.gpuMemoryUtilization above {GPU_MEMORY_UTILIZATION}")
        elif used < _MOST_USED:
            ways.append("raise spec.engine.gpuMemoryUtilization")
    return f"{', '.join(ways)}, or {more_ranks or _SMALLER}"


def _more_ranks(parts: CheckInput, room_bytes: int) -> str:
    """With how many ranks the weights fit into so much of a GPU, and whether a usual node has as many.

    Empty where they never do.
    """
    engine = parts.spec.engine
    enough = next((ranks for ranks in _RANKS if _least_bytes(parts, ranks) < room_bytes), None)
    if enough is None:
        return ""
    advice = f"set spec.engine.tensorParallelSize to at least {enough}"
    gpus, most = enough * engine.data_parallel_size, engine.gpu.node_gpus if engine.gpu else USUAL_NODE_GPUS
    if gpus <= most:
        return advice
    larger = "a larger GPU or " if engine.gpu_bytes and engine.gpu is not LARGEST else ""
    return (
        f"take {larger}a smaller checkpoint: this one needs tensorParallelSize {enough}, "
        f"{many(gpus, 'GPU')} a pod, and a node with {engine.gpu or 'such GPUs'} usually has {most}"
    )


@check("spec.tiers.cpu.capacity", about_sizes=True)
def tier_holds_sequence(parts: CheckInput) -> CheckResult:
    """Without room for one chunk it is no tier; without room for one prompt it evicts what it just stored."""
    cpu, engine = parts.tiers.cpu, parts.spec.engine
    tokens = cpu.tokens // engine.data_parallel_size
    if cpu.held_tokens == 0:
        one = chunk_bytes(parts.geometry, parts.backend)
        return tier_holds_sequence.reject(
            "TierHoldsNothing",
            f"{size(cpu.capacity_bytes)} cannot hold one chunk of "
            f"{parts.backend.tokens_per_chunk} tokens, {size(one)} in "
            f"{each_of(engine.data_parallel_size, 'engine')}; raise it",
        )
    if tokens == 0:
        prefix = prefix_tokens(parts.spec, parts.geometry) or 0
        needed = _sequence_bytes(parts, prefix)
        return tier_holds_sequence.reject(
            "TierHoldsNothing",
            f"{size(cpu.capacity_bytes)} cannot hold one prefix of {count(prefix)} tokens, whose windows and "
            f"states take {size(_beside_bytes(parts, prefix))} beside them; raise it to "
            f"{size(needed * engine.data_parallel_size)} at least",
        )
    longest = parts.geometry.longest_tokens(engine)
    if longest is not None and tokens < longest:
        return tier_holds_sequence.warn(
            "SequenceLargerThanTier",
            f"the tier holds {count(tokens)} tokens, the longest sequence has {count(longest)}: its "
            "prefix never fits whole; "
            f"{size(_sequence_bytes(parts, longest) * engine.data_parallel_size)} would hold one",
            by_itself="has what does not fit computed again",
        )
    return tier_holds_sequence.passed(
        f"{count(tokens)} tokens an engine" + (f", longest sequence {count(longest)}" if longest else "")
    )


def _sequence_bytes(parts: CheckInput, tokens: int) -> int:
    return tokens * parts.geometry.kv_bytes_per_token + _beside_bytes(parts, tokens)


def _beside_bytes(parts: CheckInput, tokens: int) -> int:
    return kept_bytes(tokens, parts.spec, parts.geometry, parts.backend)


@check("spec.tiers.cpu.capacity")
def tier_larger_than_device(parts: CheckInput) -> CheckResult:
    """The tiers are inclusive: the CPU tier holds what the device holds too."""
    gpu, cpu = parts.tiers.gpu, parts.tiers.cpu
    if gpu is None:
        return tier_larger_than_device.passed("the device's own cache is not known", reason="Unknown")
    if not gpu.tokens:
        return tier_larger_than_device.passed(
            "the device's own cache holds nothing", reason="NothingOnDevice"
        )
    numbers = f"CPU tier {count(cpu.tokens)} tokens, device {count(gpu.tokens)}"
    if cpu.tokens <= gpu.tokens:
        return tier_larger_than_device.warn(
            "TierAddsNothing",
            f"{numbers}: the tiers are inclusive, so a tier not larger than the device's cache adds no "
            "prefixes; raise it",
            by_itself="makes the tier all the same",
            weight=200,
        )
    return tier_larger_than_device.passed(f"{numbers}: {cpu.tokens / gpu.tokens:.1f} times as many")


@check("spec.tiers")
def tier_pays(parts: CheckInput) -> CheckResult:
    """Whether each tier is read sooner than a prompt is computed, by the parameters that compute a token."""
    tiers = loadings(parts.spec, parts.geometry)
    prefill_s = tiers[0].prefill_s
    if prefill_s is None:
        limits = ", ".join(map(_rate, tiers))
        return tier_pays.passed(f"{limits}: it pays where prefill is slower", reason="PrefillUnknown")
    prefill = f"prefill computes about {count(int(1 / prefill_s))} tokens/s"
    if slow := [tier for tier in tiers if not tier.pays]:
        return _does_not_pay(parts, slow, prefill)
    per_tier = "; ".join(
        f"{_rate(tier)}: it pays from {count(tier.break_even_tokens or 0)} cached tokens on" for tier in tiers
    )
    return tier_pays.passed(f"{prefill}; {per_tier}", reason="Pays")


def _rate(loading: Loading) -> str:
    return f"loading from {fields_of(loading.tier).title} brings {count(int(1 / loading.token_s))} tokens/s"


def _does_not_pay(parts: CheckInput, slow: Sequence[Loading], prefill: str) -> CheckResult:
    disk = slow[0].tier is Tier.DISK
    advice = "leave the disk tier out" if disk else "serve this model without a KVCacheTier"
    usual = parts.spec.tiers.disk is not None and parts.spec.tiers.disk.bandwidth is None
    or_say = ", or give the spec.tiers.disk.bandwidth of a faster one" if disk and usual else ""
    measures = disk and Ability.TELLS_OF_TIERS in parts.spec.backend.abilities
    return tier_pays.warn(
        "TierDoesNotPay",
        f"{', '.join(map(_rate, slow))}, {prefill}: computing again is faster; {advice} unless "
        f"`kvtier bench` shows otherwise{or_say}",
        by_itself=(
            "measures both while it serves, and reads and writes the disk only where it is sooner"
            if measures
            else "lets the backend load from it all the same"
        ),
        field=f"spec.tiers.{slow[0].tier.label}",
        weight=210,
    )
