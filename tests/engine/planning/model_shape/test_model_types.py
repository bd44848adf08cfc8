"""Every model type that vLLM has a configuration of is read as it reads it: layers, heads, length.

Each is published here in full, and as little as its type alone.
"""

import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.model_shape.config.fields import ConfigFields
from kvtier_operator.planning.model_shape.from_config import longest_sequence
from kvtier_operator.planning.model_shape.layers.layer_groups import kv_heads, one_head_dim
from kvtier_operator.planning.model_shape.layers.layer_parts import LATENT_TYPES, keeps_latent

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

# Not what a tier is for, or of which vLLM has no class: no attention, decoders of sound and of formulas.
_OTHERS: Final = {
    *("falcon_mamba", "mamba", "mamba2", "medusa", "rwkv", "xlstm", "fnet", "lxmert", "xlnet", "nemotron"),
    "deepseek_v4",  # refused: its layers compress
    *("canary", "dia", "pp_formulanet", "pe_audio", "cosmos3_edge", "step3_vl", "sam3"),
}
# Of which the type alone does not tell, but every published file does: the field is its class's own.
_OF_A_FIELD: Final = {
    *(
        "axk2",
        "chatglm",
        "dbrx",
        "hrm_text",
        "longcat_flash",
        "minicpm3",
        "mpt",
        "speech_to_text",
        "step3_text",
        "step3p5",
        "step3p7",
        "whisper",
        "zamba",
        "zamba2",
    ),
}


def test_latents() -> None:
    import vllm.config  # noqa: F401, PLC0415 - before its parts, which import each other
    from vllm.transformers_utils.model_arch_config_convertor import (  # noqa: PLC0415 - takes seconds
        ModelArchConfigConvertorBase,
    )

    for model_type in _types() - {"eagle"}:  # a head of another model, which its file has within
        text = SimpleNamespace(model_type=model_type, kv_lora_rank=512, head_dim=64)
        reader = ModelArchConfigConvertorBase(text, text)
        assert reader.is_deepseek_mla() == (model_type in LATENT_TYPES), model_type


def test_shapes(tmp_path: Path) -> None:
    import vllm  # noqa: PLC0415 - takes seconds

    compare_shapes(tmp_path, in_full=True)
    if vllm.__version__.startswith("0.32"):  # whose defaults defaults.json has
        compare_shapes(tmp_path, in_full=False)


def compare_shapes(tmp_path: Path, *, in_full: bool) -> None:
    """What kvtier reads of each type's file, whole or as it is published, is what vLLM reads."""
    logging.disable(logging.ERROR)
    wrong, compared = [], 0
    try:
        for model_type in sorted(_types() - _OTHERS - (set() if in_full else _OF_A_FIELD)):
            published = _published(model_type, in_full=in_full)
            if published is None or (expected := _of_vllm(published, tmp_path)) is None:
                continue
            compared += 1
            if (read := _read(published)) != expected:
                wrong.append(f"{model_type}: vLLM {expected}, read {read}")
    finally:
        logging.disable(logging.NOTSET)
    assert not wrong, "\n".join(wrong)
    assert compared > (350 if in_full else 280)


def _types() -> set[str]:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: PLC0415 - takes seconds
    from vllm.transformers_utils.config import _CONFIG_REGISTRY  # noqa: PLC0415 - as above

    return {*CONFIG_MAPPING, *_CONFIG_REGISTRY}


def _published(model_type: str, *, in_full: bool) -> dict[str, Any] | None:
    """A config.json of this type; None where its class needs more than that, or has another model within."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: PLC0415 - takes seconds
    from vllm.transformers_utils.config import _CONFIG_REGISTRY  # noqa: PLC0415 - as above

    own = {
        "model_type": model_type,
        "architectures": ["LlamaForCausalLM"],
    }  # a class of vLLM's own: the type decides
    registry = _CONFIG_REGISTRY if model_type in _CONFIG_REGISTRY else CONFIG_MAPPING
    try:
        made = registry[model_type]()
    except Exception:  # noqa: BLE001 - whatever the hundreds of classes raise
        return None
    if in_full:
        return {**json.loads(made.to_json_string(use_diff=False)), **own}
    return own if made.get_text_config() is made else None


def _of_vllm(published: dict[str, Any], folder: Path) -> tuple[object, ...] | None:
    """What vLLM reads of the file; None where it is no language model's, or one that it does not take."""
    import vllm.config  # noqa: F401, PLC0415 - before its parts, which import each other
    from vllm.transformers_utils.config import get_config, get_hf_text_config  # noqa: PLC0415
    from vllm.transformers_utils.model_arch_config_convertor import (  # noqa: PLC0415 - as above
        MODEL_ARCH_CONFIG_CONVERTORS,
        ModelArchConfigConvertorBase,
    )

    (folder / "config.json").write_text(json.dumps(published), encoding="utf-8")
    try:
        config = get_config(str(folder), trust_remote_code=False)
        text = get_hf_text_config(config)
        reader = MODEL_ARCH_CONFIG_CONVERTORS.get(config.model_type, ModelArchConfigConvertorBase)(
            config, text
        )
        layers, latent = reader.get_num_hidden_layers(), reader.is_deepseek_mla()
        dim, heads = reader.get_head_size(), 1 if latent else reader.get_total_num_kv_heads()
        longest = reader.derive_max_model_len_and_key()[0]
    except Exception:  # noqa: BLE001 - as above
        return None
    if not layers or not hasattr(text, "vocab_size"):
        return None
    return layers, dim, heads, None if longest == float("inf") else longest, latent


def _read(published: dict[str, Any]) -> tuple[object, ...] | str:
    fields = ConfigFields(published, "config.json")
    try:
        latent = keeps_latent(fields)
        dim = (
            fields.int("kv_lora_rank") + (fields.optional_int("qk_rope_head_dim") or 0)
            if latent
            else one_head_dim(fields)
        )
        layers = fields.int(
            "num_layers" if fields.text("model_type") == "longcat_flash" else "num_hidden_layers"
        )
        return layers, dim, 1 if latent else kv_heads(fields), longest_sequence(fields), latent
    except InvalidInputError as error:
        return str(error)
