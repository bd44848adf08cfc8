"""The workload benchmark with real engines: what it reports, not how fast it is."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.bench.connector import workloads

from kvtier_connector.config import ConnectorConfig, Policy

pytestmark = [pytest.mark.engine, pytest.mark.long, pytest.mark.filterwarnings("ignore")]


def test_both_workloads_with_and_without_the_tier(
    model_folder: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The machine's huge pages may be another test's.
    monkeypatch.setattr(workloads, "ConnectorConfig", partial(ConnectorConfig, hugepages=Policy.NEVER))
    said: list[str] = []
    report = workloads.bench_workloads(
        model_folder(vocab_size=16_384),
        log=tmp_path / "engine.log",
        say=said.append,
        rounds={"high_cache": 1, "low_cache": 1},
        divisor=100,
    )
    assert list(report) == ["high_cache", "low_cache"]
    assert len(said) == 2
    for name, section in report.items():
        assert section["requests_per_round"] == 60
        assert (section["outputs_equal"], section["requests_differing"]) == (True, 0)
        assert ("empty" in section) == (name == "low_cache")
        for engine in {"kvtier", "empty"} & section.keys():
            alone = section[engine]["device_cache_alone"]
            assert 0 < alone["hit_rate"]["median"] < 1
            assert alone["tier_hit_rate"]["spread"] == (0, 0)
            for ratio in section[engine]["ratio"].values():
                low, high = ratio["ratio_ci95"]
                assert 0 < low <= ratio["ratio"] <= high
    sides = report["high_cache"]["kvtier"]
    assert sides["with"]["tier_hit_rate"]["median"] > 0
    assert sides["with"]["hit_rate"]["median"] > sides["device_cache_alone"]["hit_rate"]["median"]
    assert sides["with"]["hit_rate"]["median"] < 0.9, "each group's first prompt is new"
    assert report["low_cache"]["empty"]["with"]["tier_hit_rate"]["spread"] == (0, 0)
    assert len(workloads.rows(report)) == 12
