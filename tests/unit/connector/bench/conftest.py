"""A model of Qwen3-8B's sizes without weights, and a run that measures nothing yet."""

from pathlib import Path

import pytest

from kvtier_connector.bench.measure import Run
from kvtier_connector.bench.model import write_bench_config


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_bench_config(tmp_path / "model", "qwen3-8b")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(
        model=None,
        shape="demo",
        scratch=tmp_path / "scratch",
        out=tmp_path / "connector.json",
        prompt_tokens=100,
        repeats=1,
        sides=(),
        turns=1,
        termination_log=None,
        vllm_args=(),
    )
