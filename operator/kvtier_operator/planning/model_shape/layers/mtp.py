"""The multi-token-prediction layers that a model brings to draft for itself."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kvtier_operator.planning.model_shape.config.engine_data.defaults import MOST_LAYERS
from kvtier_operator.planning.model_shape.config.fields import ConfigFields
from kvtier_operator.planning.model_shape.layers.layer_kinds import layer_kinds
from kvtier_operator.planning.model_shape.shape import LayerGroup, LayerKind, ModelShape

_NEXTN: Final = "num_nextn_predict_layers"
_COUNTS: Final[Mapping[str, str]] = {
    "deepseek_v3": _NEXTN,
    "deepseek_v32": _NEXTN,
    "glm_moe_dsa": _NEXTN,
    "pangu_ultra_moe": _NEXTN,
    "kimi_k3": _NEXTN,
    "mimo": _NEXTN,
    "glm4_moe": _NEXTN,
    "glm4_moe_lite": _NEXTN,
    "glm_ocr": _NEXTN,
    "ernie4_5_moe": _NEXTN,
    "nemotron_h": _NEXTN,
    "nemotron_h_puzzle": _NEXTN,
    "qwen3_next": _NEXTN,
    "qwen3_5": "mtp_num_hidden_layers",
    "qwen3_5_moe": "mtp_num_hidden_layers",
    "qwen3_5_text": "mtp_num_hidden_layers",
    "qwen3_5_moe_text": "mtp_num_hidden_layers",
    "bailing_hybrid": _NEXTN,
    "exaone_moe": _NEXTN,
    "exaone4_5": _NEXTN,
    "longcat_flash": _NEXTN,
    "step3p5": _NEXTN,
    "step3p7": _NEXTN,
    "hy_v3": _NEXTN,
    "hy_v4": _NEXTN,
    "glm5_next": _NEXTN,
    "dots3_note": _NEXTN,
    "minimax_m3_vl": "num_mtp_modules",
    "minimax_m3": "num_mtp_modules",
    "mimo_v2": "",
    "mimo_v2_flash": "",
}
"""Field of the count by model type, empty where it is always 1 (vLLM, config/speculative.py,
SpeculativeConfig.hf_config_override)."""
_ONE_BY_DEFAULT: Final = frozenset(
    {"qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen3_5_text", "qwen3_5_moe_text", "exaone_moe", "exaone4_5"}
    | {"longcat_flash", "step3p5", "step3p7", "dots3_note", "minimax_m3_vl", "minimax_m3"}
)
"""Model types whose predictor vLLM builds with one layer where the file has no count
(model_executor/models/*_mtp.py)."""
_ALWAYS_ONE: Final = frozenset({"longcat_flash"})
_WINDOWED: Final = frozenset({"mimo_v2", "mimo_v2_flash"})
_SLIDING: Final = "sliding_attention"


def mtp_layers(fields: ConfigFields) -> int | None:
    """Layers that predict tokens further on; 0 for a model without any, None where vLLM has no such type."""
    model_type = _type(fields)
    if model_type is None:
        return None
    field = _COUNTS[model_type]
    if not field or model_type in _ALWAYS_ONE:
        return 1
    count = fields.layers(field)
    return (1 if model_type in _ONE_BY_DEFAULT else 0) if count is None else count


def mtp_groups(fields: ConfigFields, shape: ModelShape, layers: int) -> tuple[LayerGroup, ...]:
    """The layers that keep keys and values, of the shape that the model's own have."""
    kinds = Counter(_kinds(fields, _type(fields), layers))
    return tuple(group for kind, count in kinds.items() for group in like_the_model(shape, kind, count))


def like_the_model(shape: ModelShape, kind: LayerKind, layers: int) -> tuple[LayerGroup, ...]:
    """So many layers as the model has them; with an indexer, if any of its layers has one."""
    kept = [group for group in shape.groups if group.kind is not LayerKind.STATE]
    sliding = kind is LayerKind.SLIDING
    kept = [group for group in kept if (group.kind is LayerKind.SLIDING) == sliding] or kept
    if not layers or not kept:
        return ()
    first = max(kept, key=lambda group: group.index_bytes)
    return (replace(first, layers=layers, draft=True),)


def _type(fields: ConfigFields) -> str | None:
    types = (fields.text("model_type"), fields.root_text("model_type"))
    return next((model_type for model_type in types if model_type in _COUNTS), None)


def _kinds(config: ConfigFields, model_type: str | None, layers: int) -> tuple[LayerKind, ...]:
    """How each predictor keeps its past (model_executor/models/*_mtp.py); most attend to everything."""
    if model_type in {"nemotron_h", "nemotron_h_puzzle"}:
        return (LayerKind.FULL,) * min(_attention_of_nemotron(config) * layers, MOST_LAYERS)
    if model_type in _WINDOWED:
        return (LayerKind.SLIDING,) * layers
    if model_type == "exaone4_5":  # made as layers 0 and up of the model (models/exaone4_5_mtp.py)
        return (layer_kinds(config)[0],) * layers
    names = config.strings("mtp_layer_types")
    if model_type in {"step3p5", "step3p7"}:
        names = config.strings("layer_types")[config.int("num_hidden_layers") :]
    if model_type == "dots3_note":
        names = names or (_SLIDING,) * layers
    return tuple(
        LayerKind.SLIDING if name == _SLIDING else LayerKind.FULL
        for name in (*names, *("full_attention",) * layers)[:layers]
    )


def _attention_of_nemotron(config: ConfigFields) -> int:
    """Attention layers of one predictor, which is a row of layers of several kinds."""
    if names := config.strings("mtp_layers_block_type"):
        return sum(name in {"attention", "full_attention"} for name in names)
    return (config.text("mtp_hybrid_override_pattern") or "*").count("*")
