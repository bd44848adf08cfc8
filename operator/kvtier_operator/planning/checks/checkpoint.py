"""Whether the engine loads the checkpoint: its code, its quantisation, its experts over the ranks."""

from collections.abc import Iterator
from typing import Final

from kvtier_operator.api.spec.command_line import FIELD
from kvtier_operator.planning.backends.engine_image import engine_minor
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.model_shape.config.engine_data.quantization import (
    computes_in_bfloat16_alone,
    has_method,
    is_deprecated,
)
from kvtier_operator.planning.model_shape.shape import Width, WidthOf
from kvtier_operator.planning.units import many
from kvtier_operator.planning.verdict import CheckResult

_TRUST: Final = "--trust-remote-code"


@check(FIELD)
def trusted_code(parts: CheckInput) -> CheckResult:
    """VLLM ends at start rather than run a model's own code (transformers_utils/config.py)."""
    if parts.geometry.shape.own_code and not parts.spec.engine.extra_args.is_on(_TRUST):
        return trusted_code.reject(
            "CodeNotTrusted",
            f"the model's configuration is code of its own, which vLLM does not run without {_TRUST}: read "
            "it, and add that, or serve another model",
        )
    return trusted_code.passed("no code of the model's own, or it is trusted")


_QUANTIZATION: Final = "--quantization"
_ALLOW: Final = "--allow-deprecated-quantization"
_FLOAT16: Final = frozenset({"float16", "half"})
_MIXED_SINCE: Final = 33


@check("spec.model.name")
def quantization(parts: CheckInput) -> CheckResult:
    """Another one ends vLLM at start (config/model.py, _verify_quantization; config/vllm.py)."""
    faults = [*_quantization_faults(parts)]
    if faults:
        return quantization.reject_each("QuantizationNotSupported", faults)
    return quantization.passed("the checkpoint is quantised in a way that vLLM loads, or not at all")


def _quantization_faults(parts: CheckInput) -> Iterator[tuple[str, str]]:
    """Field and what is wrong with it."""
    arguments, shape = parts.spec.engine.extra_args, parts.geometry.shape
    argument = arguments.value(_QUANTIZATION) or ""
    asked = argument.lower().replace("_", "-")
    if asked and not has_method(asked):
        yield (
            arguments.field_path(_QUANTIZATION),
            f"vLLM has no method {argument} of quantisation: remove it",
        )
    method = asked or shape.quantization
    if is_deprecated(method) and not arguments.is_on(_ALLOW):
        yield quantization.field, f"vLLM loads {method} with {_ALLOW} alone: add it to spec.engine.extraArgs"
    if computes_in_bfloat16_alone(method) and arguments.value("--dtype") in _FLOAT16:
        yield arguments.field_path("--dtype"), f"vLLM computes {method} in bfloat16 alone: remove it"
    minor = engine_minor(parts.spec, parts.observed)
    if shape.mixed_by_modelopt and minor is not None and minor < _MIXED_SINCE:
        yield (
            quantization.field,
            f"vLLM 0.{minor} does not load ModelOpt's MIXED_PRECISION: take 0.{_MIXED_SINCE} or later",
        )


_EXPERT_PARALLEL: Final = "--enable-expert-parallel"
_AN_EXPERT_A_RANK: Final = frozenset(
    {"bailing_moe", "cohere2_moe", "ernie4_5_moe", "exaone_moe", "hy_v3", "laguna", "lfm2_moe", "mimo_v2"}
    | {"minimax_m2", "qwen2_moe", "qwen3_moe", "qwen3_vl_moe_text", "qwen3_next", "step3_text", "step3p5"}
)
"""Types whose classes refuse more ranks than experts (vLLM, models/qwen3_moe.py and its like)."""


_RANKS: Final = "spec.engine.tensorParallelSize"
_TOWER_MODE: Final = "--mm-encoder-tp-mode"


@check(_RANKS)
def weights_shared_out(parts: CheckInput) -> CheckResult:
    """VLLM ends while it makes the layers where ranks cut them."""
    experts, arguments = parts.geometry.shape.expert_count, parts.spec.engine.extra_args
    if experts == 0 and arguments.is_on(_EXPERT_PARALLEL):  # config/model.py, _verify_with_expert_parallelism
        return weights_shared_out.reject(
            "NoExperts",
            f"the model has no experts, and vLLM ends at start with {_EXPERT_PARALLEL}: remove it",
            field=arguments.field_path(_EXPERT_PARALLEL),
        )
    ranks = parts.spec.engine.tensor_parallel_size
    if experts and experts < ranks and parts.geometry.shape.model_type in _AN_EXPERT_A_RANK:
        return weights_shared_out.reject(
            "FewerExpertsThanRanks",
            f"{many(experts, 'expert')} cannot be shared out over {ranks} ranks; use {experts} or fewer",
        )
    faults = [
        (_RANKS, _ranks_advice(width, ranks)) for width in _shared_widths(parts) if width.is_cut_by(ranks)
    ]
    if faults:
        return weights_shared_out.reject_each("WidthCut", faults)
    return weights_shared_out.passed("ranks share the weights out evenly, as far as config.json tells")


def _shared_widths(parts: CheckInput) -> Iterator[Width]:
    """Widths that ranks share out, with the engine's arguments."""
    arguments = parts.spec.engine.extra_args
    whole = {WidthOf.EXPERTS} if arguments.is_on(_EXPERT_PARALLEL) else set()
    if arguments.value(_TOWER_MODE) == "data":
        whole.add(WidthOf.TOWER)
    return (width for width in parts.geometry.shape.widths if width.of not in whole)


def _ranks_advice(width: Width, ranks: int) -> str:
    parts = f" in multiples of {width.multiple_of:,}" if width.multiple_of > 1 else ""
    fewer = (count for count in range(1, ranks) if ranks % count == 0)
    possible = ", ".join(str(count) for count in fewer if not width.is_cut_by(count))
    other = f", or add {_TOWER_MODE}=data" if width.of is WidthOf.TOWER else ""
    return (
        f"{width.field} of {width.elements:,} cannot be shared out over {ranks} ranks{parts}; "
        f"use one of {possible}{other}"
    )
