"""Intervals of windows and states that the planner refuses: those that vLLM's own check refuses."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.cases.checks import REJECT, verdict
from tests.cases.planning import check_input, resource

from kvtier_operator.planning.checks.cache_blocks import retention_interval

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


def groups(*specs: Any) -> Any:  # noqa: ANN401 - vLLM publishes no types
    return SimpleNamespace(kv_cache_groups=[SimpleNamespace(kv_cache_spec=spec) for spec in specs])


@pytest.mark.parametrize("interval", ["None", "0", "544", "1000", "1088"])
@pytest.mark.parametrize("model", ["Qwen/Qwen3-32B", "Qwen/Qwen3-Next-80B-A3B-Instruct"])
def test_an_interval(model: str, interval: str) -> None:
    import torch  # noqa: PLC0415 - takes seconds
    from vllm.v1.core.kv_cache_coordinator import (  # noqa: PLC0415
        _validate_prefix_cache_retention_interval as validate,
    )
    from vllm.v1.kv_cache_interface import FullAttentionSpec, MambaSpec  # noqa: PLC0415

    one = resource(model, engine={"extraArgs": ["--prefix-cache-retention-interval", interval]})
    block = check_input(one).geometry.block_tokens
    full = FullAttentionSpec(block_size=block, num_kv_heads=1, head_size=64, dtype=torch.bfloat16)
    state = MambaSpec(block_size=block, shapes=((1,),), dtypes=(torch.float32,))
    config = groups(full, state) if "Next" in model else groups(full)
    given = None if interval == "None" else int(interval)
    if verdict(retention_interval, one).outcome is not REJECT:
        validate(given, block, config)
        return
    with pytest.raises(ValueError, match="prefix_cache_retention_interval"):
        validate(given, block, config)
