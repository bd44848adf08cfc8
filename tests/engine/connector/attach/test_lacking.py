"""What an attached engine's tier cannot have makes it smaller, or none, and ends no engine."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engine.connector.prompts import PROMPTS, SMALL_DEVICE, answers, metric, overwrite, tokens_of
from tests.shared.waiting import eventually

from kvtier_connector.config import MIB, ConnectorConfig, Policy, kv_transfer_config
from kvtier_connector.core.machine.memory import MemoryBound
from kvtier_connector.core.region import region
from kvtier_connector.core.region.pages import PIECE_BYTES
from kvtier_connector.core.region.region import RegionRequest
from kvtier_connector.errors import RegionError

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

TIER = ConnectorConfig(cpu_capacity_bytes=512 * MIB, hugepages=Policy.NEVER, attached=True)
WARM_TOKENS = [0, 32, 64, 192, 320, 640]

Asked = Callable[[ConnectorConfig], tuple[float, list[int]]]


@pytest.fixture
def capacity_and_warm(engine: Callable[..., Any], cold_tokens: list[list[int]]) -> Asked:
    """Return a function that asks an engine the same twice: its tier's bytes, and the tokens that it had."""

    def ask(settings: ConnectorConfig) -> tuple[float, list[int]]:
        with engine(kv_transfer_config(settings), **SMALL_DEVICE) as llm:
            for ids in PROMPTS:
                answers(llm, [ids])
            eventually(lambda: is_grown(llm), "tier that grows no more")
            for ids in PROMPTS:
                answers(llm, [ids])
            overwrite(llm)
            again = [answers(llm, [ids])[0] for ids in PROMPTS]
            assert tokens_of(again) == cold_tokens[: len(PROMPTS)]
            return metric(llm, "vllm:kvtier_cpu_capacity_bytes"), [cached for _, cached in again]

    return ask


def is_grown(llm: Any) -> bool:  # noqa: ANN401 - vLLM's
    answers(llm, [PROMPTS[0]])
    return not metric(llm, "vllm:kvtier_cpu_growing")


@pytest.mark.parametrize(
    ("available_bytes", "capacity_bytes", "warm"),
    [(256 * MIB, 128 * MIB, WARM_TOKENS), (PIECE_BYTES, 0, [0] * len(PROMPTS))],
)
def test_memory_that_holds_not_all_of_it(
    capacity_and_warm: Asked,
    monkeypatch: pytest.MonkeyPatch,
    available_bytes: int,
    capacity_bytes: int,
    warm: list[int],
) -> None:
    def bound() -> MemoryBound:
        return MemoryBound(available_bytes, "the test")

    monkeypatch.setattr("kvtier_connector.vllm.spec.tightest_bound", bound)
    monkeypatch.setattr(region, "tightest_bound", bound)
    assert capacity_and_warm(TIER) == (capacity_bytes, warm)


@pytest.mark.parametrize("error", [RegionError("refused"), OSError(12, "Cannot allocate memory")])
def test_a_region_that_cannot_be_made(
    capacity_and_warm: Asked, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(_: RegionRequest) -> None:
        raise error

    monkeypatch.setattr(region, "create", refuse)
    assert capacity_and_warm(TIER) == (0, [0] * len(PROMPTS))


def test_a_capacity_below_one_chunk_and_a_disk_that_nobody_may_write_to(
    capacity_and_warm: Asked, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    behind = replace(TIER, disk_path=str(tmp_path / "file" / "tier"), disk_capacity_bytes=8 * MIB)
    assert capacity_and_warm(behind) == (512 * MIB, WARM_TOKENS)
    capacity_bytes, _ = capacity_and_warm(replace(TIER, cpu_capacity_bytes=1))
    assert 0 < capacity_bytes < MIB
