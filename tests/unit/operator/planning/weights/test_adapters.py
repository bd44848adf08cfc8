"""Room for LoRA adapters, beside what vLLM's layers allocate for a dense model and for one of experts."""

from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.units import MIB
from kvtier_operator.planning.weights.device_weights import AdapterBytes, Adapters, adapter_bytes, adapters_of

MODULES = [{"name": "sql", "source": "org/sql"}, {"name": "law", "source": "org/law"}]
HIDDEN, HEADS, KV, INNER, VOCABULARY, LAYERS = 5120, 64 * 128, 8 * 128, 25600, 151936, 64


def spec(modules: list[dict[str, str]] = MODULES, *words: str, **engine: Any) -> Any:  # noqa: ANN401 - as in YAML
    one = resource(model_fields={"loraModules": modules}, engine={"extraArgs": [*words], **engine})
    return one.spec


def taken(*words: str, **engine: Any) -> AdapterBytes:  # noqa: ANN401 - as above
    one = spec(MODULES, *words, **engine)
    found = adapter_bytes(one, resolve_geometry(one, Observed()))
    assert found
    return found


def allocated(ranks: int, rank: int = 16) -> int:
    """What create_lora_weights makes of each linear layer, of the embeddings and of the head, in 2 bytes."""
    attention = 3 * HIDDEN + (HEADS + 2 * KV) // ranks + HEADS // ranks + HIDDEN
    mlp = 2 * HIDDEN + 2 * INNER // ranks + INNER // ranks + HIDDEN
    return 2 * rank * (LAYERS * (attention + mlp) + 2 * (HIDDEN + VOCABULARY // ranks))


@pytest.mark.parametrize(
    ("modules", "words", "expected"),
    [
        ([], [], None),
        ([], ["--enable-lora"], Adapters(1, 1, 16)),
        (MODULES, [], Adapters(1, 2, 16)),
        (MODULES, ["--max-loras=4", "--max-lora-rank", "64"], Adapters(4, 4, 64)),
        (MODULES, ["--max-cpu-loras", "8"], Adapters(1, 8, 16)),
    ],
    ids=str,
)
def test_how_many(modules: list[dict[str, str]], words: list[str], expected: Adapters | None) -> None:
    assert adapters_of(spec(modules, *words)) == expected


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_on_each_gpu_about_what_vllm_allocates(ranks: int) -> None:
    estimate = taken(tensorParallelSize=ranks).gpu
    assert allocated(ranks) * 0.98 <= estimate <= allocated(ranks) * 1.1


def test_it_grows_with_rank_and_number() -> None:
    one = taken()
    assert taken("--max-lora-rank", "64").gpu == 4 * one.gpu
    more = taken("--max-loras", "3")
    assert (more.gpu, more.host) == (3 * one.gpu, 3 * one.gpu)
    assert one.host == 2 * one.gpu
    assert taken(tensorParallelSize=4).host == one.host  # each rank reads whole adapters


def test_the_plan_has_less_cache_and_more_memory() -> None:
    engine = {"gpuMemory": "80Gi", "tensorParallelSize": 2}
    without = make_plan(resource(engine=engine), Observed())
    beside = make_plan(resource(engine=engine, model_fields={"loraModules": MODULES}), Observed())
    room = taken(tensorParallelSize=2)
    assert without.tiers.gpu
    assert beside.tiers.gpu
    assert without.tiers.gpu.bytes_per_rank - beside.tiers.gpu.bytes_per_rank == room.gpu
    [line] = [each for each in beside.budget.memory if each.what == "LoRA adapters"]
    assert line.bytes == 2 * room.host
    assert any("room for 1 LoRA adapter of rank 16" in note for note in beside.notes)
    assert room.gpu > 100 * MIB


def test_experts_have_room_each() -> None:
    config = {
        "model_type": "qwen3_moe",
        "hidden_size": 2048,
        "num_hidden_layers": 48,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "moe_intermediate_size": 768,
        "num_experts": 128,
        "num_experts_per_tok": 8,
    }
    one = resource("Qwen/Qwen3-30B-A3B", model_fields={"loraModules": MODULES, "weights": "57Gi"}).spec
    found = adapter_bytes(one, resolve_geometry(one, Observed(model_config=config)))
    assert found
    experts = 2 * 16 * 48 * 128 * 3 * (2048 + 768)
    assert experts < found.gpu < experts * 1.1


def test_experts_of_the_catalogue_have_room_too() -> None:
    one = resource("openai/gpt-oss-20b", engine={"extraArgs": ["--enable-lora"]}).spec
    found = adapter_bytes(one, resolve_geometry(one, Observed()))
    assert found
    experts = 2 * 16 * 24 * 32 * 3 * (2880 + 2880)
    assert experts < found.gpu < experts * 1.3  # 4 bits and scales are taken for 4


def test_a_model_of_unknown_size() -> None:
    one = resource(
        "own/model", geometry={"kvBytesPerToken": 1000}, model_fields={"loraModules": MODULES}
    ).spec
    assert adapter_bytes(one, resolve_geometry(one, Observed())) is None
