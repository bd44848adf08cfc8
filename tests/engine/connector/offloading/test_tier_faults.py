"""Real engines with the tier whose loads fail: computed once, healed, and nothing wrong left behind."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.connector.memory_tier import KNOWN, TIER, TOGETHER
from tests.engine.connector.prompts import (
    PROMPTS,
    SMALL_DEVICE,
    answers,
    metric,
    overwrite,
    prompt,
    tokens_of,
)

from kvtier_connector.config import kv_transfer_config

# What vLLM and PyTorch warn of is not ours.
pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

if TYPE_CHECKING:
    from vllm import LLM

# A prompt is computed in several steps, each with room for others.
SMALL_STEPS = {"max_num_batched_tokens": 512, "long_prefill_token_threshold": 128}


@pytest.fixture
def faulty(engine: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("KVTIER_TEST_FAULTS", str(tmp_path))
    faults = {"kv_connector_module_path": "tests.engine.connector.offloading.faulty_connector"}
    with engine(kv_transfer_config(TIER) | faults, **SMALL_DEVICE, **SMALL_STEPS) as llm:
        yield llm


def test_a_failed_load_is_computed_once_and_healed(faulty: "LLM", tmp_path: Path) -> None:
    ids = PROMPTS[-1]
    cold = answers(faulty, [ids])[0][0]
    overwrite(faulty)
    (tmp_path / "fail").touch()
    assert answers(faulty, [ids])[0] == (cold, 0)
    assert (tmp_path / "loads").read_text().splitlines() == ["apart"]
    assert metric(faulty, "vllm:kvtier_cpu_failed_chunks") == 20

    (tmp_path / "fail").unlink()
    answers(faulty, [prompt(40)])  # the engine lives, and has stored the chunks again
    overwrite(faulty)
    assert answers(faulty, [ids])[0] == (cold, 640)


def test_a_load_that_fails_in_its_step_leaves_nothing_wrong_behind(
    cold_tokens: list[list[int]], faulty: "LLM", tmp_path: Path
) -> None:
    cold = cold_tokens[len(PROMPTS) :]
    answers(faulty, [KNOWN])
    overwrite(faulty)
    (tmp_path / "fail").touch()
    assert tokens_of(answers(faulty, TOGETHER)) == cold
    assert set((tmp_path / "loads").read_text().splitlines()) == {"in step"}

    (tmp_path / "fail").unlink()
    assert tokens_of(answers(faulty, TOGETHER)) == cold  # from the device, where it is
    overwrite(faulty)
    again = [answers(faulty, [ids])[0] for ids in TOGETHER]
    assert tokens_of(again) == cold
    assert again[1][1] == 544
