"""The shape that a Hugging Face config.json describes.

The rules are those of vLLM 0.32 (transformers_utils/model_arch_config_convertor.py), so that a plan and
the engine read the same file the same way.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from kvtier_operator.planning.model_shape.config_fields import ConfigFields
from kvtier_operator.planning.model_shape.layer_kinds import layer_kinds
from kvtier_operator.planning.model_shape.recurrent_state import state_bytes
from kvtier_operator.planning.model_shape.shape import LayerGroup, LayerKind, ModelShape

# Fields of models whose layers each have a shape of their own, or a cache that is not a plain key and
# value per token: DeepSeek V4, MiMo V2, Nemotron NAS, MiniMax M1, Gemma 3n and 4's shared KV layers.
_PER_LAYER_SHAPES: Final = (
    "compress_ratios",
    "hybrid_layer_pattern",
    "block_configs",
    "attn_type_list",
    "per_layer_config",
    "num_kv_shared_layers",
)
# Bytes of an indexer key: head_dim one-byte elements and a 4-byte scale for each 128 of them
# (vLLM, models/deepseek_v2.py, Indexer: head_dim + head_dim // quant_block_size * 4).
_INDEX_SCALE_BLOCK: Final = 128
_INDEX_SCALE_BYTES: Final = 4
_FP8_BITS: Final = 8


def shape_from_config(
    config: Mapping[str, Any], source: str, *, weights_bytes: int | None = None
) -> ModelShape:
    """The shape in a parsed config.json.

    Args:
        config: The parsed file.
        source: Its name, for the report and for messages.
        weights_bytes: Size of the model's weights, which no config.json tells.

    Raises:
        InvalidInputError: A field is missing, or the file describes a cache that kvtier cannot size.
    """
    fields = ConfigFields(config, source)
    for name in _PER_LAYER_SHAPES:
        if fields.get(name):
            raise fields.wrong(
                name,
                f"model type {fields.text('model_type') or '(none)'} gives layers caches of different "
                "shapes, which kvtier cannot size; set spec.model.geometry.kvBytesPerToken",
            )
    if fields.text("model_type") == "minicpm3":
        raise fields.wrong(
            "model_type", "minicpm3 caches expanded heads, not its latent; set spec.model.geometry"
        )
    kinds = Counter(layer_kinds(fields))
    groups = [_group(fields, kind, layers) for kind, layers in kinds.items()]
    notes = []
    if any(group.kind is LayerKind.STATE and not group.state_bytes for group in groups):
        notes.append(
            "the size of this model's linear-attention state is not known: prefixes take somewhat more"
        )
    return ModelShape(
        source=source,
        groups=tuple(groups),
        dtype_bytes=_auto_dtype_bytes(fields),
        attention_heads=fields.optional_int("num_attention_heads", "n_head"),
        max_position_tokens=fields.optional_int(
            "max_position_embeddings", "n_positions", "max_seq_len", "seq_length"
        ),
        weights_bytes=weights_bytes,
        chunked_attention=bool(fields.optional_int("attention_chunk_size")),
        notes=tuple(notes),
    )


def _group(config: ConfigFields, kind: LayerKind, layers: int) -> LayerGroup:
    if kind is LayerKind.STATE:
        return LayerGroup(kind, layers, 0, 0, 0, state_bytes=state_bytes(config) or 0)
    if kind is LayerKind.FULL and config.has("kv_lora_rank"):
        latent = config.int("kv_lora_rank") + (config.optional_int("qk_rope_head_dim") or 0)
        index_dim = config.optional_int("index_head_dim") or 0
        return LayerGroup(
            LayerKind.MLA,
            layers,
            kv_heads=1,
            key_dim=latent,
            value_dim=0,
            index_bytes=index_dim + index_dim // _INDEX_SCALE_BLOCK * _INDEX_SCALE_BYTES,
        )
    heads, head_dim = _kv_heads(config), _head_dim(config)
    if kind is LayerKind.FULL and config.has("global_head_dim"):  # Gemma 4's full-attention layers
        heads = config.optional_int("num_global_key_value_heads") or heads
        head_dim = config.int("global_head_dim")
    return LayerGroup(
        kind,
        layers,
        kv_heads=heads,
        key_dim=head_dim,
        value_dim=head_dim,
        window_tokens=config.int("sliding_window") if kind is LayerKind.SLIDING else 0,
    )


def _kv_heads(config: ConfigFields) -> int:
    if config.get("multi_query") is True and not config.get("new_decoder_architecture"):  # Falcon
        return 1
    nested = ConfigFields(config.mapping("attn_config"), "attn_config")  # DBRX, MPT
    return (
        config.optional_int(
            "n_head_kv",
            "num_kv_heads",
            "num_key_value_heads",
            "multi_query_group_num",
            "num_attention_groups",
        )
        or nested.optional_int("kv_n_heads")
        or config.int("num_attention_heads", "n_head", "n_heads")
    )


def _head_dim(config: ConfigFields) -> int:
    explicit = config.optional_int("head_dim", "hidden_size_per_head", "attention_head_dim", "kv_channels")
    if explicit:
        return explicit
    heads = config.int("num_attention_heads", "n_head", "n_heads")
    return config.int("hidden_size", "n_embd", "d_model") // heads


def _auto_dtype_bytes(config: ConfigFields) -> int:
    """Element size of `--kv-cache-dtype auto`.

    Two bytes: vLLM loads float32 checkpoints as bfloat16 or float16 (config/model.py,
    _resolve_auto_dtype), and a quantised checkpoint quantises its weights, not its cache. One byte only
    where the checkpoint carries an fp8 scheme for the cache itself (utils/torch_utils.py,
    resolve_kv_cache_dtype_string; compressed-tensors' kv_cache_scheme).
    """
    quantization = config.mapping("quantization_config", "compression_config")
    inner = quantization.get("quantization")
    for part in (quantization, inner if isinstance(inner, Mapping) else {}):
        scheme = part.get("kv_cache_scheme")
        if isinstance(scheme, Mapping) and scheme.get("num_bits") == _FP8_BITS:
            return 1
        if "fp8" in str(part.get("kv_cache_quant_algo") or scheme).lower():
            return 1
    return 2
