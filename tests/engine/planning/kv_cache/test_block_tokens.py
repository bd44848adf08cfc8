"""The block that the planner takes where a resource names none: what vLLM takes by itself."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from kvtier_operator.api.spec.engine import Device
from kvtier_operator.planning.model_shape.block_tokens import DEFAULT_BLOCK_TOKENS

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


def test_an_engine_on_a_cpu(engine: Callable[..., AbstractContextManager[Any]]) -> None:
    # 0.33 chooses when the model has been loaded, so a configuration alone does not tell
    with engine(block_size=None) as llm:
        cache = llm.llm_engine.vllm_config.cache_config
        assert (cache.block_size, cache.user_specified_block_size) == (
            DEFAULT_BLOCK_TOKENS[Device.CPU],
            False,
        )


def test_elsewhere() -> None:
    from vllm.config import CacheConfig  # noqa: PLC0415 - takes seconds

    assert CacheConfig().block_size == DEFAULT_BLOCK_TOKENS[Device.GPU]
