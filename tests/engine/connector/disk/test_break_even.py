"""What an engine learns of its own pace, by which its disk is judged."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engine.connector.disk_engine import DiskEngine, tier
from tests.engine.connector.prompts import SMALL_DEVICE, answers, prompt
from tests.shared.waiting import eventually

from kvtier_connector.config import kv_transfer_config
from kvtier_connector.core.behind.break_even import BreakEven

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


def test_the_pace_is_known_from_the_first_prompt_on_and_by_the_next_engine(
    engine: Callable[..., Any], model_folder: Callable[..., Path], tmp_path: Path
) -> None:
    settings = replace(tier(tmp_path / "disk"), disk_break_even=True)
    transfer, model = kv_transfer_config(settings), model_folder()

    def known(llm: Any) -> BreakEven:  # noqa: ANN401 - vLLM publishes no types
        return DiskEngine(llm).disk.break_even

    def has_both(llm: Any) -> bool:  # noqa: ANN401 - as above
        answers(llm, [prompt(20)])  # figures come with a step
        rates = known(llm).rates
        return bool(rates.read_bytes_per_s and rates.pace)

    with engine(transfer, model=model, **SMALL_DEVICE) as llm:
        assert known(llm).prefill.pace is None
        answers(llm, [prompt(200)])  # too short to say anything
        assert known(llm).prefill.pace is None
        answers(llm, [prompt(640)])
        assert known(llm).prefill.pace
        eventually(lambda: has_both(llm), "the disk looked at", 60)
        answers(llm, [prompt(20)])
        kept = known(llm).rates
    with engine(transfer, model=model, **SMALL_DEVICE) as llm:
        found = known(llm).rates
        assert found.token_s == pytest.approx(kept.token_s)
        assert found.read_bytes_per_s
