"""What is compared on a GPU, with real engines on a CPU: what it reports, not how fast it is."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kvtier_connector.bench.comparison import Comparison
from kvtier_connector.bench.load import Scaling
from kvtier_connector.bench.ttft import compare_ttft, rows
from kvtier_connector.bench.vllm_arguments import ServeOptions
from kvtier_connector.bench.workloads import compare_workloads
from kvtier_connector.config import MIB, ConnectorConfig, Policy, kv_transfer_config

pytestmark = [pytest.mark.engine, pytest.mark.long, pytest.mark.filterwarnings("ignore")]
SMALL = Scaling(device_cache_tokens=9_271 * 16, tier_cache_tokens=41_000 * 16, divisor=100)


@pytest.fixture(scope="module")
def comparison(model_folder: Callable[..., Path]) -> Comparison:
    # The machine's huge pages may be another test's.
    tier = ConnectorConfig(cpu_capacity_bytes=64 * MIB, hugepages=Policy.NEVER, memlock=Policy.NEVER)
    arguments = (
        *("--served-model-name", "some/model", "--port", "8000", "--data-parallel-size", "2"),
        *("--dtype", "bfloat16", "--block-size", "32", "--enforce-eager"),
        *("--kv-transfer-config", json.dumps(kv_transfer_config(tier))),
    )
    return Comparison(
        model=model_folder(vocab_size=16_384, torch_dtype="bfloat16"),
        drawn=False,
        sides=("none", "kvtier"),
        turns=1,
        serve_options=ServeOptions.read(arguments),
        device="cpu",
    )


def test_first_tokens(comparison: Comparison, tmp_path: Path) -> None:
    said: list[str] = []
    report = compare_ttft(
        comparison, prompt_tokens=500, repeats=2, log=tmp_path / "ttft.log", say=said.append
    )
    assert report["outputs_equal"] is True
    assert report["sides"]["none"]["cached_tokens"] == {"cold": 0, "device_hit": 480}
    assert report["sides"]["kvtier"]["cached_tokens"] == {"cold": 0, "device_hit": 480, "cpu_tier": 480}
    assert len(said) == 2
    assert len(rows(report)) == 3
    assert {path.name for path in tmp_path.iterdir()} == {"ttft.none.1.log", "ttft.kvtier.1.log"}


def test_workloads(comparison: Comparison, tmp_path: Path) -> None:
    report = compare_workloads(
        comparison,
        log=tmp_path / "workloads.log",
        say=lambda _line: None,
        rounds={"high_cache": 1},
        scaling=SMALL,
    )
    high = report["high_cache"]
    hit_rate = {side: each["hit_rate"]["median"] for side, each in high["sides"].items()}
    assert 0 < hit_rate["none"] < hit_rate["kvtier"] < 0.9
    assert high["sides"]["none"]["tier_hit_rate"]["spread"] == (0, 0)
    assert high["sides"]["kvtier"]["tier_hit_rate"]["median"] > 0
    assert high["requests"] == 60
