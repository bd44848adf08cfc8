"""Widths of a model's matrices that ranks share out evenly, or vLLM ends while it makes the layers."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kvtier_operator.planning.model_shape.config.checkpoint import quantization_method, quantization_of
from kvtier_operator.planning.model_shape.config.fields import ConfigFields
from kvtier_operator.planning.model_shape.layers.layer_groups import one_head_dim
from kvtier_operator.planning.model_shape.parameters import expert_count, weights_of_groups
from kvtier_operator.planning.model_shape.shape import Width, WidthOf

_MLP: Final = "intermediate_size"
_EXPERTS: Final = "moe_intermediate_size"
_HEADS: Final = "num_attention_heads"
# Their classes make another width of it, or none.
_OTHER_MLPS: Final = ("lfm2", "mamba", "falcon_mamba", "recurrent_gemma", "nemotron_h", "zamba2")
_TOWER: Final = "vision_config"
# Their towers share out heads and MLPs (vLLM, models/clip.py, siglip.py, glm4_1v.py, qwen*_vl.py).
_TOWERS: Final = ("clip", "siglip", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "glm4v", "exaone4_5", "minicpmv4")
_TOWER_FIELDS: Final = ("num_heads", _HEADS, _MLP)
_FP8, _AWQ = "fp8", ("awq", "awq-marlin", "auto-awq")
_PACKED: Final = "pack-quantized"  # compressed-tensors' form of 4 and 8 bits
_FINEST_BLOCK: Final = (
    32  # of experts' scales (vLLM, layers/fused_moe/oracle/fp8.py, refine_fp8_moe_block_shape)
)


def shared_widths(config: Mapping[str, Any], fields: ConfigFields) -> Iterator[Width]:
    """All of a config.json; what is no number in it, or is left to the class, is not among them."""
    step = _step(fields)
    experts = expert_count(fields)
    if experts and (width := _positive(fields, _EXPERTS)):
        yield Width(_EXPERTS, width, _step_of_experts(fields, step), WidthOf.EXPERTS)
    if experts == 0 and not fields.text("model_type").startswith(_OTHER_MLPS):
        if width := _positive(fields, _MLP):
            yield Width(_MLP, width, step)
        if step > 1 and (heads := _positive(fields, _HEADS)):
            yield Width(f"{_HEADS} by head_dim", heads * one_head_dim(fields), step)
    tower = config.get(_TOWER)
    if isinstance(tower, Mapping):
        own_type, model_type = str(tower.get("model_type") or ""), str(config.get("model_type") or "")
        if own_type.startswith(_TOWERS) or model_type.startswith(_TOWERS):
            for name in _TOWER_FIELDS:
                elements = tower.get(name)
                if type(elements) is int and elements > 0:
                    yield Width(f"{_TOWER}.{name}", elements, of=WidthOf.TOWER)


def _positive(fields: ConfigFields, name: str) -> int:
    return max(fields.int_in_file(name) or 0, 0)


def _step(fields: ConfigFields) -> int:
    """What a rank's inputs of a matrix are a multiple of, for the checkpoint has one scale for so many.

    Source: vLLM, layers/quantization/utils/fp8_utils.py, validate_fp8_block_shape; auto_awq.py;
    compressed_tensors/schemes/compressed_tensors_wNa16.py.
    """
    quantization, method = quantization_of(fields), quantization_method(fields)
    block = quantization.get("weight_block_size")
    if method == _FP8 and isinstance(block, list) and block and type(block[-1]) is int and block[-1] > 0:
        return int(block[-1])
    if method in _AWQ:
        group = quantization.get("q_group_size", quantization.get("group_size"))
    elif quantization.get("format") == _PACKED:
        group = next((weights.get("group_size") for weights in weights_of_groups(quantization)), None)
    else:
        return 1
    return group if type(group) is int and group > 0 else 1


def _step_of_experts(fields: ConfigFields, step: int) -> int:
    if quantization_method(fields) != _FP8:
        return 1  # whose kernels take other widths, too
    hidden = fields.int_in_file("hidden_size") or step
    return _FINEST_BLOCK if math.gcd(step, hidden) % _FINEST_BLOCK == 0 else step
