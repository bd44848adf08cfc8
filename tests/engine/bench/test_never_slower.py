"""The stand-in's engine reads from a disk that surely pays, and never from one that surely does not."""

from pathlib import Path

import pytest

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

TOKENS = 1024


@pytest.mark.parametrize(("gbps", "tokens_per_s", "from_disk"), [(100.0, 2_000, 1.0), (0.01, 200_000, 0.0)])
def test_what_an_earlier_engine_left_is_read_where_that_is_sooner(
    tmp_path: Path, gbps: float, tokens_per_s: float, from_disk: float
) -> None:
    from tests.bench.connector.never_slower import (  # noqa: PLC0415 - takes seconds
        Device,
        never_slower_row,
    )

    row = never_slower_row(gbps, Device(tokens_per_s), TOKENS, prompts=2, folder=tmp_path)
    assert row["from_disk"] == from_disk
    assert row["ratio"] > 0
    assert {"disk_gbps", "prefill_tokens_s", "prompt_tokens", "ttft_on_s", "ttft_off_s", "p99_ratio"} < set(
        row
    )
    assert list(tmp_path.iterdir()) == []
