"""What a quantised checkpoint says of the KV cache: vLLM follows it where `--kv-cache-dtype` is auto.

Most quantise the weights alone. Read as vLLM 0.32 reads it: transformers_utils/model_arch_config_convertor.py
(_normalize_quantization_config), utils/torch_utils.py (get_kv_cache_quant_algo_string) for ModelOpt's, and
model_executor/layers/attention/attention.py for compressed-tensors'.
"""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_operator.api.schema.complaints import show_value
from kvtier_operator.api.spec.engine import KVCacheDtype
from kvtier_operator.planning.model_shape.config.engine_data.quantization import has_method
from kvtier_operator.planning.model_shape.config.fields import ConfigFields

_FIELD: Final = "quantization_config"
_FIELDS: Final = (_FIELD, "compression_config")
_MODELOPT: Final = "modelopt"
_COMPRESSED_TENSORS: Final = "compressed-tensors"
_MODELOPT_WEIGHTS: Final = {"FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO", "NVFP4", "MIXED_PRECISION"}
_MIX: Final = "MIXED_PRECISION"
_MODELOPT_CACHES: Final = {"fp8": KVCacheDtype.FP8_E4M3, "nvfp4": KVCacheDtype.NVFP4}
# Methods whose attention layers bring scales of an fp8 cache whatever the file says of the cache.
_SCALES: Final = {"fp8", "mxfp8", "quark"}
_MIXED: Final = "modelopt-mixed"  # some layers have scales, and attention only where the file names it
_GPTQ: Final = {"gptq", "gptq-marlin", "auto-gptq"}
# vLLM, layers/quantization/auto_gptq.py, TYPE_MAP: field, values, and those in words.
_GPTQ_FIELDS: Final = (("bits", (4, 8), "4 or 8 bits"), ("sym", (True,), "symmetric weights (true)"))
_FP8_BITS, _FP4_BITS = 8, 4
_STRATEGIES: Final = {"tensor", "attn_head"}


def quantization_method(config: ConfigFields) -> str:
    """Name of the method, spelt with hyphens; empty where the checkpoint names none."""
    return _method(config, quantization_of(config))


def is_mixed_by_modelopt(config: ConfigFields) -> bool:
    """Whether the file has ModelOpt's own words for a mix, which vLLM reads since 0.33."""
    inner = _part(quantization_of(config), "quantization")
    return str(inner.get("quant_algo")).upper() == _MIX and quantization_method(config) == _MIXED


def _refuse_unloaded(config: ConfigFields, quantization: Mapping[str, Any], method: str) -> None:
    """vLLM, config/model.py, _verify_quantization; quantization/utils/gptq_utils.py."""
    if method and not has_method(method):
        raise config.error(
            f"{_FIELD}.quant_method",
            f"got {show_value(quantization.get('quant_method'))}, which vLLM does not load; "
            "serve a checkpoint that is quantised otherwise, or not",
        )
    if method not in _GPTQ:
        return
    if quantization.get("desc_act") is True and quantization.get("group_size") != -1:
        raise config.error(
            f"{_FIELD}.desc_act", "vLLM loads no GPTQ checkpoint that orders its groups by activation"
        )
    for name, loaded, wanted in _GPTQ_FIELDS:
        value = quantization.get(name, loaded[0])
        if value not in loaded:
            raise config.error(
                f"{_FIELD}.{name}", f"got {show_value(value)}; vLLM loads GPTQ checkpoints only of {wanted}"
            )


def checkpoint_cache(config: ConfigFields, *, latent: bool) -> tuple[KVCacheDtype, bool]:
    """Dtype of the cache, and whether attention layers bring scales of an fp8 one, as the checkpoint says.

    Args:
        config: The model's config.json, with what stands beside it.
        latent: Whether the layers keep a latent (MLA), for which vLLM does not look at compressed-tensors'
            scheme.

    Raises:
        InvalidInputError: The checkpoint is one that vLLM does not load.
    """
    at_root = config.root_mapping(*_FIELDS)
    quantization = quantization_of(config)
    method = _method(config, quantization)
    _refuse_unloaded(config, quantization, method)
    if method.startswith(_MODELOPT):
        # What it says of the cache is looked for at the root alone.
        return _modelopt_cache(at_root), method != _MIXED
    scheme = quantization.get("kv_cache_scheme")
    if method == _COMPRESSED_TENSORS and scheme is not None and not latent:
        if not isinstance(scheme, Mapping):
            raise config.error(f"{_FIELD}.kv_cache_scheme", f"got {show_value(scheme)}, must be an object")
        _check_scheme(config, scheme)
        return KVCacheDtype.FP8, True
    return KVCacheDtype.AUTO, method in _SCALES and not latent


def quantization_of(config: ConfigFields) -> Mapping[str, Any]:
    """What the checkpoint says of its quantisation; empty for one that is not quantised."""
    return config.root_mapping(*_FIELDS) or config.mapping(*_FIELDS)


def _method(config: ConfigFields, quantization: Mapping[str, Any]) -> str:
    producer, inner = _part(quantization, "producer"), _part(quantization, "quantization")
    weights = inner.get("quant_algo")
    if weights is not None and (producer.get("name") == _MODELOPT or "modelopt_quant_config" in inner):
        if str(weights).upper() not in _MODELOPT_WEIGHTS:
            known = ", ".join(sorted(_MODELOPT_WEIGHTS))
            raise config.error(
                f"{_FIELD}.quantization.quant_algo",
                f"got {show_value(weights)}; vLLM loads ModelOpt's checkpoints of {known}",
            )
        return _MIXED if str(weights).upper() == _MIX else _MODELOPT
    method = quantization.get("quant_method")
    return method.lower().replace("_", "-") if isinstance(method, str) else ""


def _modelopt_cache(quantization: Mapping[str, Any]) -> KVCacheDtype:
    inner = _part(quantization, "quantization") or quantization
    algorithm = next(
        (
            part[name]
            for name in ("kv_cache_scheme", "kv_cache_quant_algo")
            for part in (inner, quantization)
            if part.get(name)
        ),
        None,
    )
    if isinstance(algorithm, Mapping):
        algorithm = _scheme_name(algorithm)
    return _MODELOPT_CACHES.get(str(algorithm).lower(), KVCacheDtype.AUTO)


def _scheme_name(scheme: Mapping[str, Any]) -> str:
    if scheme.get("type") != "float":
        return ""
    if scheme.get("num_bits") == _FP8_BITS and scheme.get("dynamic") is False:
        return "fp8"
    return "nvfp4" if scheme.get("num_bits") == _FP4_BITS else ""


def _check_scheme(config: ConfigFields, scheme: Mapping[str, Any]) -> None:
    """vLLM, layers/quantization/compressed_tensors/compressed_tensors.py, validate_kv_cache_scheme."""
    accepted = (
        ("type", scheme.get("type") == "float", "float"),
        ("num_bits", scheme.get("num_bits") == _FP8_BITS, str(_FP8_BITS)),
        ("strategy", scheme.get("strategy") in _STRATEGIES, "tensor or attn_head"),
        ("symmetric", bool(scheme.get("symmetric")), "true"),
    )
    for name, ok, wanted in accepted:
        if not ok:
            raise config.error(
                f"{_FIELD}.kv_cache_scheme.{name}",
                f"got {show_value(scheme.get(name))}; vLLM loads such a checkpoint only with {wanted}",
            )


def _part(quantization: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = quantization.get(name)
    return part if isinstance(part, Mapping) else {}
