"""Quantised checkpoints of the catalogue's models are known by their own names, where those say enough."""

import pytest

from kvtier_operator.api.spec.engine import KVCacheDtype
from kvtier_operator.planning.model_shape.from_catalogue import shape_from_catalogue
from kvtier_operator.planning.model_shape.unknown import unknown_model


@pytest.mark.parametrize(
    ("name", "base", "has_scales"),
    [
        ("Qwen/Qwen3-32B-AWQ", "Qwen/Qwen3-32B", False),
        ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4", "Qwen/Qwen2.5-72B-Instruct", False),
        ("casperhansen/llama-3.3-70b-instruct-awq", "meta-llama/Llama-3.3-70B-Instruct", False),
        ("Qwen/Qwen3-32B-FP8", "Qwen/Qwen3-32B", True),
    ],
)
def test_known(name: str, base: str, has_scales: bool) -> None:
    shape, of = shape_from_catalogue(name), shape_from_catalogue(base)
    assert shape is not None
    assert of is not None
    assert (shape.groups, shape.cache_dtype) == (of.groups, KVCacheDtype.AUTO)
    assert (shape.weights_bytes, shape.has_cache_scales) == (None, has_scales)
    assert shape.source.endswith("quantised")
    assert ", same as https" in shape.source


@pytest.mark.parametrize(
    "name",
    [
        "nvidia/Qwen3-32B-FP8",  # ModelOpt's: its cache may be fp8 too
        "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic",
        "nobody/nothing-AWQ",
        "Qwen/Qwen3-32B-NVFP4",
    ],
)
def test_not_known(name: str) -> None:
    assert shape_from_catalogue(name) is None


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("nvidia/Qwen3-32B-FP8", "Qwen/Qwen3-32B"),
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "meta-llama/Llama-3.3-70B-Instruct"),
        ("RedHatAI/Qwen2.5-7B-Instruct-quantized.w4a16", "Qwen/Qwen2.5-7B-Instruct"),
        ("unsloth/Qwen3-8B-unsloth-bnb-4bit", "Qwen/Qwen3-8B"),
        ("unsloth/gpt-oss-20b", "openai/gpt-oss-20b"),
        ("a/Qwen3-8B-of-mine", None),
    ],
)
def test_a_copy_is_called_one(name: str, base: str | None) -> None:
    message = str(unknown_model(name, ""))
    assert (f"by its name a copy of {base}, " in message) is (base is not None), message


def test_a_checkpoint_that_names_its_cache() -> None:
    shape = shape_from_catalogue("nvidia/Llama-3.1-70B-Instruct-FP8")
    assert shape is not None
    assert shape.cache_dtype is KVCacheDtype.FP8_E4M3
