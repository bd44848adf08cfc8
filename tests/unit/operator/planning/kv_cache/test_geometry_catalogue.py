"""KV bytes per token of well-known models, worked out by hand from their published config.json."""

import pytest
from tests.cases.planning import resource

from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.model_shape.catalogue import entries
from kvtier_operator.planning.model_shape.from_catalogue import shape_from_catalogue
from kvtier_operator.planning.observed import Observed

# model, bytes per token in bf16 at TP 1, what each cached prefix takes beside its tokens
FIGURES = {
    # 2 x 64 layers x 8 heads x 128 x 2 B
    "Qwen/Qwen3-32B": (262_144, 0),
    # 2 x 32 x 8 x 128 x 2
    "meta-llama/Llama-3.1-8B": (131_072, 0),
    # 2 x 80 x 8 x 128 x 2
    "meta-llama/Llama-3.3-70B-Instruct": (327_680, 0),
    # 2 x 28 x 2 heads x 128 x 2: hidden 1536 / 12 heads = 128
    "Qwen/Qwen2.5-1.5B": (28_672, 0),
    # 2 x 94 x 4 x 128 x 2
    "Qwen/Qwen3-235B-A22B": (192_512, 0),
    # 2 x 28 x 4 x 128 x 2, 2 x 48 x 8 x 128 x 2, 2 x 64 x 8 x 128 x 2: as Qwen2.5's
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B": (57_344, 0),
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B": (196_608, 0),
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B": (262_144, 0),
    "deepseek-ai/DeepSeek-R1-Distill-Llama-8B": (131_072, 0),
    "deepseek-ai/DeepSeek-R1-Distill-Llama-70B": (327_680, 0),
    # 2 x 92 x 8 x 128 x 2
    "zai-org/GLM-4.6": (376_832, 0),
    # 2 x 22 x 4 x 64 x 2: hidden 2048 / 32 heads = 64
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0": (22_528, 0),
    # no num_key_value_heads: 12 heads keep KV each; 2 x 12 x 12 x 64 x 2
    "facebook/opt-125m": (36_864, 0),
    # MLA: 61 layers x (512 latent + 64 rotary) x 2 B
    "deepseek-ai/DeepSeek-V3": (70_272, 0),
    "deepseek-ai/DeepSeek-R1": (70_272, 0),
    "moonshotai/Kimi-K2-Thinking": (70_272, 0),
    "deepseek-ai/DeepSeek-V2-Lite": (31_104, 0),  # 27 x 576 x 2
    # and an indexer key of 128 one-byte elements with a 4-byte scale: 61 x (1152 + 132)
    "deepseek-ai/DeepSeek-V3.2": (78_324, 0),
    # 18 of 36 layers are full: 2 x 18 x 8 x 64 x 2; the others keep ceil(127 / 16) = 8 blocks of 16 tokens
    # of 18 layers x 2 KiB: 18 x 128 x 2048
    "openai/gpt-oss-120b": (36_864, 4_718_592),
    "openai/gpt-oss-20b": (24_576, 3_145_728),
    # 10 of 62 layers are full: 2 x 10 x 16 x 128 x 2. The 52 sliding ones make ceil(52 / 10) = 6 groups of
    # 10 layer slots, each with ceil(1023 / 16) = 64 blocks of 16 tokens x 8 KiB: 60 x 1024 x 8192
    "google/gemma-3-27b-it": (81_920, 503_316_480),
    # alternating: 21 of 42 layers full, 2 x 21 x 8 x 256 x 2; window 4096: 21 x 4096 x 8192
    "google/gemma-2-9b": (172_032, 704_643_072),
    # every layer has a window: all of them are kept for each token, as one group
    "mistralai/Mistral-7B-v0.1": (131_072, 0),
    # every fourth of 48 layers is full: 2 x 12 x 8 x 128 x 2. The others make 3 groups of 12, each with
    # ceil(8191 / 16) = 512 blocks of its chunk: 3 x 512 x 16 x 12 x 4096
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": (49_152, 1_207_959_552),
    # 12 of 48 layers have attention: 2 x 12 x 2 x 256 x 2. The block grows to 544 tokens to hold a state:
    # 36 state layers x 544 x 2048 B
    "Qwen/Qwen3-Next-80B-A3B-Instruct": (24_576, 36 * 544 * 2_048),
    # 10 of 40 layers: 2 x 10 x 2 x 256 x 2, and 30 states in blocks of 1,056 tokens x 2048 B
    "Qwen/Qwen3.6-35B-A3B": (20_480, 30 * 1_056 * 2_048),
    "Qwen/Qwen3-VL-32B-Thinking": (262_144, 0),  # as Qwen3-32B
    # 78 x 576 x 2, and an indexer key of 132 B in every fourth layer, 21 of them
    "zai-org/GLM-5.3": (78 * 576 * 2 + 21 * 132, 0),
    # 2 x 60 x 4 x 128 x 2, and an index key of 128 x 2 B in 57 layers
    "MiniMaxAI/MiniMax-M3": (122_880 + 57 * 256, 0),
}


@pytest.mark.parametrize("model", FIGURES)
def test_bytes_per_token(model: str) -> None:
    geometry = resolve_geometry(resource(model).spec, Observed())
    assert (geometry.kv_bytes_per_token, geometry.bytes_per_prefix) == FIGURES[model]
    assert geometry.kv_bytes_per_token_per_rank == geometry.kv_bytes_per_token


@pytest.mark.parametrize("model", list(entries()))
def test_every_entry_can_be_sized(model: str) -> None:
    geometry = resolve_geometry(resource(model).spec, Observed())
    assert geometry.kv_bytes_per_token > 0
    assert entries()[model]["source"] in geometry.shape.source


def test_every_entry_names_the_repository_it_is_from() -> None:
    for model, fields in entries().items():
        assert fields["source"] == f"https://huggingface.co/{model}/blob/main/config.json"


def test_aliases_stand_for_one_model_each() -> None:
    names = [
        name.lower() for model, fields in entries().items() for name in (model, *fields.get("aliases", ()))
    ]
    assert len(names) == len(set(names))


def test_names_are_not_case_sensitive() -> None:
    assert shape_from_catalogue("qwen/qwen3-32b") == shape_from_catalogue("Qwen/Qwen3-32B")


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ("Qwen/Qwen3-32B", 32_762_123_264),
        ("meta-llama/Llama-3.1-8B", 8_030_261_248),
        ("mistralai/Mixtral-8x7B-v0.1", 46_702_792_704),
    ],
)
def test_weights_are_the_published_parameters_in_bf16(model: str, parameters: int) -> None:
    shape = shape_from_catalogue(model)
    assert shape is not None
    assert shape.weights_bytes == 2 * parameters
