"""Whether vLLM starts with the values of the engine's arguments, beside each other and the model."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kvtier_common.one_line import one_line
from kvtier_operator.api.spec.command_line import FIELD, whole_of
from kvtier_operator.api.spec.engine import Device
from kvtier_operator.planning.arguments.batches import SEQUENCES, STEP, most_batched_tokens
from kvtier_operator.planning.arguments.serve_options import serve_options
from kvtier_operator.planning.backends.engine_image import engine_minor
from kvtier_operator.planning.base.vllm_minor import possible_minors
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.pod.engine_memory import ENCODER_BYTES, ENCODERS, FORMAT, LOADER, STREAMER
from kvtier_operator.planning.tiers.capacity import MEDIA_GIB, media_bytes, usable_bytes
from kvtier_operator.planning.units import many, size
from kvtier_operator.planning.verdict import CheckResult
from kvtier_operator.planning.weights.device_weights import BALANCED, BALANCER, COPIES, rank_weights
from kvtier_operator.planning.weights.offloading import (
    BACKEND,
    GROUP_SIZE,
    IN_GROUP,
    PREFETCH,
    PREFETCH_STEP,
    group_layers,
    in_group,
    prefetches,
)

_Faults = Iterator[tuple[str, str]]  # path, and what is wrong with it
_ENDS: Final = "vLLM ends at start"
_EXPERT_PARALLEL: Final = "--enable-expert-parallel"
_NEAR: Final = 0.5
_SHOWN_CHARACTERS: Final = 60


@check(FIELD)
def argument_values(parts: CheckInput) -> CheckResult:
    """What vLLM's parser takes, and its configuration or a loader refuses, once weights may be there."""
    faults = [fault for rule in _RULES for fault in rule(parts)]
    if faults:
        return argument_values.reject_each("ValueNotTaken", faults)
    return _load_format(parts) or argument_values.passed("vLLM starts with these values")


def _offloading(parts: CheckInput) -> _Faults:
    """Source: vLLM, config/offload.py, validate_offload_config."""
    line = parts.spec.engine.extra_args
    group, moved, step = group_layers(line), in_group(line), line.number(PREFETCH_STEP)
    if not group and line.value(BACKEND) == PREFETCH:
        advice = f"give {GROUP_SIZE}, or remove {BACKEND}"
        yield line.field_path(BACKEND), f"{BACKEND} {PREFETCH} without {GROUP_SIZE}: {_ENDS}; {advice}"
    elif group and moved > group:
        message = f"{IN_GROUP} {moved} of {GROUP_SIZE} {group}: {_ENDS}; give {group} or less"
        yield line.field_path(IN_GROUP), message
    if step == 0 and (group or prefetches(line)):
        message = f"{PREFETCH_STEP} 0 with {GROUP_SIZE}: {_ENDS}; give 1 or more"
        yield line.field_path(PREFETCH_STEP), message


def _batch(parts: CheckInput) -> _Faults:
    """Source: vLLM, config/scheduler.py, verify_max_model_len; sequences by default are lowered to fit.

    By default a step holds the longest sequence where prompts are computed in one, and images of some models.
    """
    engine, line = parts.spec.engine, parts.spec.engine.extra_args
    step, sequences = line.number(STEP), line.number(SEQUENCES)
    if step is not None and sequences is not None and 0 < step < sequences:
        yield (
            line.field_path(STEP),
            f"{STEP} {step} is less than {SEQUENCES} {sequences}: {_ENDS}; raise the one or lower the other",
        )
    longest = parts.geometry.longest_tokens(engine)
    if step is None and sequences is not None and longest and not parts.geometry.shape.images_both_ways:
        most = max(longest, most_batched_tokens(engine))
        if sequences > most:
            message = f"{SEQUENCES} {sequences} without {STEP}, which by default is {most:,} at most"
            yield line.field_path(SEQUENCES), f"{message}: {_ENDS}; lower the one or give the other"


def _balanced_experts(parts: CheckInput) -> _Faults:
    """Source: vLLM, config/parallel.py (EPLBConfig, ParallelConfig), layers/fused_moe/layer.py."""
    line, experts = parts.spec.engine.extra_args, parts.geometry.shape.expert_count
    asked = line.json_object(BALANCER).get(COPIES, 0)
    copies, config, switch = whole_of(asked), line.field_path(BALANCER), line.field_path(BALANCED)
    if copies is None or copies < 0:
        yield config, f"{COPIES} {_shorten(asked)} of {BALANCER}: vLLM takes a whole number, at least 0"
        return
    if not line.is_on(BALANCED):
        if copies:
            advice = f"add {BALANCED}, or remove it"
            yield config, f"{COPIES} {copies} of {BALANCER} without {BALANCED}: {_ENDS}; {advice}"
        return
    if parts.spec.engine.device is Device.CPU:
        yield switch, f"{BALANCED} on device cpu: {_ENDS}; remove it"
    elif not line.is_on(_EXPERT_PARALLEL):
        yield switch, f"{BALANCED} without {_EXPERT_PARALLEL}: {_ENDS}; add that, or remove it"
    elif parts.ranks == 1:
        where = "spec.engine.tensorParallelSize or dataParallelSize"
        yield switch, f"{BALANCED} on one GPU: {_ENDS}; raise {where}, or remove it"
    elif experts and (over := (experts + copies) % parts.ranks):
        more = copies + parts.ranks - over
        message = (
            f"{many(experts, 'expert')} and {COPIES} {copies} cannot be shared out over {parts.ranks} ranks"
        )
        yield config, f"{message}: {_ENDS}; give {COPIES} {more}"


def _streamer(parts: CheckInput) -> _Faults:
    """Source: vLLM, model_loader/runai_streamer_loader.py."""
    line = parts.spec.engine.extra_args
    if (line.value(FORMAT) or "").lower() != STREAMER:
        return
    limit = line.json_object(LOADER).get("memory_limit", 0)
    if type(limit) is not int or limit < -1:
        message = (
            f"memory_limit {_shorten(limit)} of {LOADER}: vLLM takes a whole number of bytes, at least -1"
        )
        yield line.field_path(LOADER), message


def _encoder_cache(parts: CheckInput) -> _Faults:
    """Source: vLLM, distributed/ec_transfer/ec_connector/cpu/common.py."""
    line = parts.spec.engine.extra_args
    settings = line.json_object(ENCODERS).get("ec_connector_extra_config")
    asked = settings.get(ENCODER_BYTES, 1) if isinstance(settings, Mapping) else 1
    if (whole_of(asked) or 0) <= 0:
        message = f"{ENCODER_BYTES} {_shorten(asked)} of {ENCODERS}: give a whole number of bytes, above 0"
        yield line.field_path(ENCODERS), message


def _media(parts: CheckInput) -> _Faults:
    """Source: vLLM, multimodal/gpu_ipc_memory.py, reserve_mm_ipc_gpu_memory."""
    engine = parts.spec.engine
    reserved_bytes, weights = media_bytes(engine, parts.geometry), rank_weights(engine, parts.geometry)
    usable = usable_bytes(engine)
    if engine.kv_cache_memory is not None:
        room_bytes = engine.kv_cache_memory.bytes
    elif usable is not None:
        room_bytes = usable - (weights.least_bytes if weights else 0)
    else:
        return
    if reserved_bytes and reserved_bytes >= room_bytes:
        taken = f"takes {size(reserved_bytes)} off a KV cache that has {size(max(0, room_bytes))} at most"
        yield engine.extra_args.field_path(MEDIA_GIB), f"{MEDIA_GIB} {taken}: {_ENDS}; lower it"


def _shorten(value: object) -> str:
    return one_line(json.dumps(value), _SHOWN_CHARACTERS)


_RULES: Final[tuple[Callable[[CheckInput], _Faults], ...]] = (
    _offloading,
    _batch,
    _balanced_experts,
    _streamer,
    _encoder_cache,
    _media,
)


def _load_format(parts: CheckInput) -> CheckResult | None:
    """A format that no minor has a loader for; a plugin may bring one."""
    line = parts.spec.engine.extra_args
    asked = (line.value(FORMAT) or "").lower()
    minors = possible_minors(engine_minor(parts.spec, parts.observed))
    known = {name for minor in minors for name in serve_options(minor)[FORMAT].known}
    if not asked or asked in known:
        return None
    # 5 ms to import: not for those who need it not
    from difflib import get_close_matches  # noqa: PLC0415

    near = get_close_matches(asked, sorted(known), n=1, cutoff=_NEAR)
    advice = f"give {near[0]}, if that is meant" if near else "remove it"
    return argument_values.warn(
        "LoadFormatNotKnown",
        f"vLLM has no loader for {FORMAT} {asked}, and ends at start unless a plugin brings one: {advice}",
        by_itself="plans as for files that are read one at a time",
        field=line.field_path(FORMAT),
    )
