"""A model that the catalogue lacks, whose configuration stands in a ConfigMap."""

import json

from tests.cluster.operator.world import World, resource

LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 2048,
    "max_position_embeddings": 131072,
}
MODEL = {"name": "team/model-of-its-own", "configRef": {"name": "its-config"}}
_GIB = 1 << 30


def config_map(world: World, **data: str) -> None:
    files = {name.replace("_json", ".json"): text for name, text in data.items()}
    world.core.create_namespaced_config_map(
        world.namespace, {"metadata": {"name": "its-config"}, "data": files}
    )


def test_a_model_that_nothing_knows_says_what_to_do(world: World) -> None:
    world.create(resource(model={"name": "team/model-of-its-own"}))
    said = world.until_condition("Accepted", status="False")
    assert "spec.model.name: nothing knows the KV geometry" in said["message"]
    assert "spec.model.configRef" in said["message"]


def test_a_config_map_that_comes_later_is_found(world: World) -> None:
    world.create(resource(model=MODEL))
    said = world.until_condition("Accepted", status="False")
    assert f"ConfigMap {world.namespace}/its-config is not there" in said["message"]
    config_map(world, config_json=json.dumps(LLAMA))
    world.until_condition("Accepted", status="True")
    status = world.until_settled()["status"]
    # 2 x 16 layers x 8 heads x 64 x 2 bytes
    assert status["tiers"]["cpu"]["tokens"] == 100 * _GIB // 32_768
    assert world.children()


def test_what_stands_beside_the_configuration_counts(world: World) -> None:
    quantization = {
        "producer": {"name": "modelopt"},
        "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"},
    }
    config_map(world, config_json=json.dumps(LLAMA), hf_quant_config_json=json.dumps(quantization))
    world.create(resource(model=MODEL))
    world.until_condition("Accepted", status="True")
    assert world.until_settled()["status"]["tiers"]["cpu"]["tokens"] == 100 * _GIB // 16_384


def test_what_is_wrong_in_it_is_named_with_its_place(world: World) -> None:
    config_map(world, config_json=json.dumps(LLAMA | {"num_hidden_layers": "many"}))
    world.create(resource(model=MODEL))
    said = world.until_condition("Accepted", status="False")
    where = f"ConfigMap {world.namespace}/its-config, config.json: num_hidden_layers: "
    assert f"{where}got 'many', must be a whole number" in said["message"]
    world.core.patch_namespaced_config_map(
        "its-config", world.namespace, {"data": {"config.json": json.dumps(LLAMA)}}
    )
    world.until_condition("Accepted", status="True")
