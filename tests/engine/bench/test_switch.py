"""The overhead bench's switch: without its connector an engine is one without a tier."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.bench.connector.switched_engine import SWITCH
from tests.engine.connector.prompts import metric, prompt

from kvtier_connector.config import MIB, ConnectorConfig, Policy, kv_transfer_config

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

TIER = ConnectorConfig(cpu_capacity_bytes=4 * MIB, hugepages=Policy.NEVER)


def test_an_engine_stores_only_while_it_has_its_connector(engine: Callable[..., Any]) -> None:
    from tests.bench.connector.switch import switch  # noqa: PLC0415 - as above
    from vllm import SamplingParams  # noqa: PLC0415 - takes seconds

    with engine(kv_transfer_config(TIER), **SWITCH) as llm:

        def stored_after(seed: int, *, connected: bool) -> float:
            how = SamplingParams(temperature=0, max_tokens=4, extra_args=switch(llm, connected=connected))
            llm.generate([{"prompt_token_ids": prompt(100, seed)}], how, use_tqdm=False)
            llm.generate([{"prompt_token_ids": prompt(20, seed)}], how, use_tqdm=False)  # reports the stores
            return metric(llm, "vllm:kv_offload_store_bytes")

        first = stored_after(1, connected=True)
        without = stored_after(2, connected=False)
        again = stored_after(3, connected=True)
    assert (first, without, again) == (3 * 32 * 1024, first, 2 * first)
