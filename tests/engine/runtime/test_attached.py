"""An engine that others start, however they do: it gets the tier by a folder and a variable alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.connector.prompts import BLOCKS, answers, prompt, tokens_of
from tests.engine.runtime.attached import their_engine

from kvtier_connector.attach.decisions import INFO_METRIC, Reason
from kvtier_connector.config import MIB

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

LENGTHS = (65, 200, 333)
CACHED_TOKENS = sum((64, 192, 320))
VOCABULARY = 290


def asked(length: int, seed: int = 0) -> list[int]:
    return [3 + number % VOCABULARY for number in prompt(length, seed)]


@pytest.mark.parametrize(
    ("shape", "older"),
    [
        pytest.param("eval", False, id="eval"),
        pytest.param("serve", False, id="serve", marks=pytest.mark.long),
        pytest.param("module", False, id="module", marks=pytest.mark.long),
        # whose package for the CPU has a command `vllm` that fails
        pytest.param("module", True, id="module-older", marks=pytest.mark.long),
    ],
)
def test_it_serves_the_same_tokens_and_is_warm_from_memory(
    shape: str, older: bool, engine: Callable[..., Any], tiny_model: Path, tmp_path: Path
) -> None:
    prompts = [asked(length) for length in LENGTHS]
    with engine(model=tiny_model) as plain:
        expected = tokens_of(answers(plain, prompts))
    settings = {"cpu_capacity_bytes": 16 * MIB, "hugepages": "Require"}  # of which this machine has none
    with their_engine(shape, tiny_model, tmp_path, settings, older=older) as theirs:
        assert [theirs.answer(ids) for ids in prompts] == expected
        for seed, blocks in enumerate([BLOCKS // 2, BLOCKS - BLOCKS // 2], start=100):
            theirs.answer(asked(32 * blocks, seed), tokens=1)
        found_tokens = theirs.metric("vllm:external_prefix_cache_hits_total")
        assert [theirs.answer(ids) for ids in prompts] == expected
        assert theirs.metric("vllm:external_prefix_cache_hits_total") - found_tokens == CACHED_TOKENS
        assert theirs.metric("vllm:kvtier_cpu_hit_chunks_total") > 0
        assert theirs.metrics(INFO_METRIC) == {(Reason.ATTACHED.value,): 1.0}
        assert theirs.log.count("kvtier: attached: 16.0 MiB of memory for the engine") == 1
