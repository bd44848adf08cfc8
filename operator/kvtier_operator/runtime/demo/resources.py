"""The demo's resources, fit_resource to a model and to what is asked."""

from pathlib import Path
from typing import Final

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.model_shape.block_tokens import engine_block_tokens
from kvtier_operator.runtime.demo.routing import ENGINES, RoutingLoad

RESOURCE_PATH: Final = Path(__file__).with_name("kvcachetier.yaml")
# Tokens of the question, the answer and a tokenizer's own, beside a document's.
_BESIDE_TOKENS: Final = 64
# One that vLLM keeps for itself (v1/core/block_pool.py, null_block) and one begun.
_SPARE_BLOCKS: Final = 2
_TIER_FACTOR: Final = 16
# The chat template's tokens, and as much as a prompt cut by words may be longer than asked for.
_AROUND_TOKENS: Final = 128
_PROMPTS_ON_DEVICE: Final = 2
_KIB: Final = 1024


def fit_resource(
    resource: KVCacheTier, name: str, tokens: int, kv_bytes_per_token: int, *, prompts: int = _TIER_FACTOR
) -> KVCacheTier:
    """The demo's resource for documents of `tokens` tokens: the device cache holds one, the CPU tier all."""
    longest = tokens + _BESIDE_TOKENS
    block = engine_block_tokens(resource.spec.engine)
    device_kib = -(-(longest // block + _SPARE_BLOCKS) * block * kv_bytes_per_token // _KIB)
    document = resource.manifest()
    document["spec"]["model"]["name"] = name
    document["spec"]["engine"] |= {"maxModelLen": longest, "kvCacheMemory": _quantity(device_kib)}
    document["spec"]["tiers"]["cpu"]["capacity"] = _quantity(device_kib * prompts)
    return parse_resource(document, "the demo's resource")


def fit_routing_resource(
    resource: KVCacheTier, name: str, load: RoutingLoad, kv_bytes_per_token: int
) -> KVCacheTier:
    """The same for two engines: a device cache holds two prompts, the CPU tier all of two ways' prompts."""
    block = engine_block_tokens(resource.spec.engine)
    longest = load.system_tokens + load.question_tokens + load.output_tokens + _AROUND_TOKENS
    longest_blocks = -(-longest // block)
    device_blocks = _PROMPTS_ON_DEVICE * longest_blocks + _SPARE_BLOCKS
    tier_blocks = 2 * load.requests * (longest_blocks - load.system_tokens // block)
    tier_blocks += 2 * load.groups * longest_blocks
    document = resource.manifest()
    document["spec"]["model"]["name"] = name
    document["spec"]["replicas"] = ENGINES
    document["spec"]["engine"] |= {
        "maxModelLen": longest,
        "kvCacheMemory": _quantity(-(-device_blocks * block * kv_bytes_per_token // _KIB)),
    }
    document["spec"]["tiers"]["cpu"]["capacity"] = _quantity(
        -(-tier_blocks * block * kv_bytes_per_token // _KIB)
    )
    return parse_resource(document, "the demo's resource for two engines")


def _quantity(kib: int) -> str:
    return f"{kib}Ki" if kib % _KIB else f"{kib // _KIB}Mi"
