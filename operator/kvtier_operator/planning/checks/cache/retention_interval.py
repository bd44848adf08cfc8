"""How often vLLM keeps windows and states along a prompt."""

import math
from typing import Final

from kvtier_operator.planning.arguments.extra_args import FIELD, field_path_of, is_on, value_of
from kvtier_operator.planning.backends.kept_states import EVERYWHERE, RETENTION, kept_bytes, retention_tokens
from kvtier_operator.planning.checks.cache.hybrid_manager import OFF
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.model_shape.geometry import LayerKind
from kvtier_operator.planning.tiers.capacity import prefix_tokens
from kvtier_operator.planning.units import count, round_up, size
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("retention-interval", FIELD)


def retention_interval(given: CheckInput) -> CheckResult:
    """The plan counts windows and states as often as they are kept; vLLM's own interval of 0 is once.

    Source: vllm/v1/core/kv_cache_coordinator.py (_validate_prefix_cache_retention_interval) and
    .../kv_connector/v1/offloading/scheduler.py (SchedulerOffloadConfig.from_spec), 0.32 and 0.33.
    """
    interval = value_of(given.spec.engine.extra_args, RETENTION)
    if interval is None or interval == "0":
        return _VERDICTS.passed("windows and states are kept where prompts end or part")
    step, place = _step(given), field_path_of(given.spec.engine.extra_args, RETENTION)
    if interval in EVERYWHERE:
        return _more(given) if _is_sparse(given) else _VERDICTS.passed("every layer keeps every token")
    if not interval.isascii() or not interval.isdigit():
        return _VERDICTS.reject(
            "RetentionIntervalNotSupported",
            f"{RETENTION} {interval}: vLLM takes a number of tokens, or None",
            field=place,
        )
    if not _is_sparse(given):
        return _VERDICTS.reject(
            "RetentionIntervalNotSupported",
            f"{RETENTION} {interval}: every layer of this model keeps every token, and vLLM then takes 0 "
            "only; remove it",
            field=place,
        )
    if int(interval) % step:
        return _VERDICTS.reject(
            "RetentionIntervalNotSupported",
            f"{RETENTION} {interval}: vLLM takes multiples of {step} tokens only, a block and a chunk of the "
            f"tier; set it to {round_up(int(interval), step)}, or remove it",
            field=place,
        )
    return _more(given)


def _is_sparse(given: CheckInput) -> bool:
    kinds = {group.kind for group in given.geometry.groups}
    managed = given.traits.no_hybrid_manager is None and not is_on(given.spec.engine.extra_args, OFF)
    return LayerKind.STATE in kinds or (LayerKind.SLIDING in kinds and managed)


def _step(given: CheckInput) -> int:
    block = given.geometry.block_tokens
    if not given.traits.offloading:
        return block
    return math.lcm(block, given.backend.tokens_per_chunk or block)


def _more(given: CheckInput) -> CheckResult:
    spec, geometry = given.spec, given.geometry
    interval = retention_tokens(spec, geometry) or geometry.block_tokens
    tokens = prefix_tokens(spec, geometry) or 0
    return _VERDICTS.warn(
        "StatesKeptOften",
        f"windows and states are kept every {count(interval)} tokens: "
        f"{size(kept_bytes(tokens, spec, geometry))} of them for a prefix of {count(tokens)} tokens, where "
        f"vLLM's own interval of 0 keeps {size(geometry.bytes_per_prefix)}; remove it unless prompts part at "
        "such places",
        field=field_path_of(spec.engine.extra_args, RETENTION),
        by_itself="counts all of them in the tiers and for the picker: fewer prefixes fit",
    )
