"""The whole command that a card runs, with real engines on a CPU: what it reports, not how fast it is."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.bench.card.__main__ import main

pytestmark = [pytest.mark.engine, pytest.mark.long, pytest.mark.filterwarnings("ignore")]


def test_every_side_of_a_cpu_by_one_command(tmp_path: Path) -> None:
    out = tmp_path / "card"
    as_long_as_it_takes = ["--minutes", "60", "--call-minutes", "60"]
    options = ["--device", "cpu", "--prompts", "1", "--out", str(out), *as_long_as_it_takes]
    result = CliRunner().invoke(main, options)
    assert result.exit_code == 0, result.output
    report = json.loads((out / "card.json").read_text())
    assert (report["not_there"], report["left_out"]) == ({}, [])
    ttft = report["ttft"]
    assert ttft["outputs_differing"] == 0
    assert ttft["sides"]["none"]["cached_tokens"] == {"cold": 0, "device_hit": 480}
    assert ttft["sides"]["kvtier"]["cached_tokens"] == {"cold": 0, "device_hit": 480, "cpu_tier": 480}
    for name, section in report["workloads"].items():
        hit_rate = {side: each["hit_rate"]["median"] for side, each in section["sides"].items()}
        assert hit_rate["kvtier"] >= hit_rate["none"], name
    assert "outputs on all sides: **equal**" in result.output
