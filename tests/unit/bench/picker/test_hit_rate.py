import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.bench.picker import hit_rate
from tests.bench.picker.hit_rate import Measured, Series, check_promises, main, measure

from kvtier_common.benchmarks import Workload
from kvtier_scorer.simulate.policies import POLICIES
from kvtier_scorer.simulate.policy import DEFAULT_WEIGHTS, weights_in_order
from kvtier_scorer.simulate.settings import QWEN3_32B_2X_H100, PoolSettings

SMALL = Workload(
    groups=3, prompts_per_group=3, system_tokens=2_000, question_tokens=50, output_tokens=20, concurrency=3
)
POOL = PoolSettings(pods=2, pod=QWEN3_32B_2X_H100, scrape_interval_s=0.1)


def measured(optimum: float = 0.8, **series: tuple[float, float]) -> Measured:
    return Measured(
        {name.replace("_", "-"): Series((rate,), (ttft_s,)) for name, (rate, ttft_s) in series.items()},
        (optimum,),
    )


def test_every_policy_and_kvtiers_with_other_weights_are_measured() -> None:
    done: list[int] = []
    weights = [DEFAULT_WEIGHTS, weights_in_order(1, 1, 1, 1)]
    found = measure("high-cache", SMALL, POOL, seeds=2, weights=weights, report=lambda: done.append(1))
    assert set(found.series) == {*POLICIES, "kvtier 1:1:1:1", "kvtier-precise 1:1:1:1"}
    assert (
        {len(series.hit_rate) for series in found.series.values()}
        == {len(found.optimum)}
        == {len(done)}
        == {2}
    )
    for series in found.series.values():
        for rate, bound in zip(series.hit_rate, found.optimum, strict=True):
            assert rate <= bound


def test_json_has_means_spreads_and_the_optimum() -> None:
    found = Measured({"a": Series((0.2, 0.4), (1.0, 2.0))}, (0.5, 0.7)).to_json()
    assert found["a"] == pytest.approx(0.3)
    assert found["optimum"] == pytest.approx(0.6)
    assert found["hit_rate_deviation"]["a"] == pytest.approx(0.02**0.5)
    assert found["ttft_mean_s"]["a"] == pytest.approx(1.5)
    assert found["ttft_mean_deviation_s"]["a"] == pytest.approx(0.5**0.5)


@pytest.mark.parametrize(
    ("rate", "other", "ttft_s", "expected"),
    [
        (0.77, 0.76, 0.9, (True, True, True)),
        (0.75, 0.70, 0.9, (False, True, True)),
        (0.77, 0.77, 0.9, (True, False, True)),
        (0.77, 0.76, 1.1, (True, True, False)),
    ],
)
def test_what_is_required_is_held_against_the_means(
    rate: float, other: float, ttft_s: float, expected: tuple[bool, bool, bool]
) -> None:
    high = measured(kvtier=(rate, 1), gaie=(other, 1), round_robin=(0.1, 9))
    low = measured(kvtier=(0.5, ttft_s), gaie=(0.5, 0.1), round_robin=(0.1, 1.0))
    assert tuple(check_promises(high, low)["kvtier"].values()) == expected


def test_the_command_measures_both_workloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hit_rate, "HIGH_CACHE", SMALL)
    monkeypatch.setattr(hit_rate, "LOW_CACHE", SMALL)
    out = tmp_path / "picker.json"
    result = CliRunner().invoke(main, ["--out", str(out), "--seeds", "1", "--weights", "1:2:3:4"])
    assert result.exit_code == 0, result.output
    found = json.loads(out.read_text())["hit_rate"]
    assert set(found) == {"high-cache", "low-cache", "seeds", "required"}
    assert "kvtier 1:2:3:4" in found["high-cache"]
    assert set(found["required"]) == {"kvtier", "kvtier-precise", "kvtier 1:2:3:4", "kvtier-precise 1:2:3:4"}


def test_bad_weights_are_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["--out", str(tmp_path / "x.json"), "--weights", "1"])
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: must be whole numbers")
