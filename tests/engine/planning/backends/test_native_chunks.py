"""The chunk that the planner gives vLLM's own connector, against groups of layers with unlike blocks."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_operator.planning.backends import plan_backend
from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.observed import Observed

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


def _planned() -> dict[str, Any]:
    disk = {"capacity": "1Ti", "volume": {"emptyDir": {}}}
    spec = resource("openai/gpt-oss-120b", backend="Native", tiers={"disk": disk}).spec
    _, value = plan_backend(spec, resolve_geometry(spec, Observed())).args
    config: dict[str, Any] = json.loads(value)
    return config


@pytest.mark.parametrize("windows_block", [16, 32])
def test_vllm_takes_it_whatever_the_groups_blocks(
    windows_block: int, model_folder: Callable[..., Path]
) -> None:
    import torch  # noqa: PLC0415 - takes seconds
    from vllm.config import CacheConfig, KVTransferConfig, ModelConfig, VllmConfig  # noqa: PLC0415 - as above
    from vllm.distributed.kv_transfer.kv_connector.v1.offloading.config import (  # noqa: PLC0415 - as above
        build_offloading_config,
    )
    from vllm.v1.kv_cache_interface import (  # noqa: PLC0415 - as above
        FullAttentionSpec,
        KVCacheConfig,
        KVCacheGroupSpec,
        SlidingWindowSpec,
    )

    shape = {"num_kv_heads": 1, "head_size": 64, "dtype": torch.bfloat16}
    groups = [
        KVCacheGroupSpec(["full"], FullAttentionSpec(block_size=16, **shape)),
        KVCacheGroupSpec(
            ["window"], SlidingWindowSpec(block_size=windows_block, sliding_window=128, **shape)
        ),
    ]
    cache = KVCacheConfig(num_blocks=8, kv_cache_tensors=[], kv_cache_groups=groups)
    config = VllmConfig(
        model_config=ModelConfig(str(model_folder()), skip_tokenizer_init=True),
        cache_config=CacheConfig(block_size=16),
        kv_transfer_config=KVTransferConfig(**_planned()),
    )
    assert build_offloading_config(config, cache).cache.blocks_per_chunk == 16
