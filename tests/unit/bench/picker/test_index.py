import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.bench.picker.core import main
from tests.bench.picker.index import measure_index

from kvtier_scorer.index.layout import PAGE_SLOTS


def test_an_entry_takes_at_most_32_bytes() -> None:
    # `python -m tests.bench.picker core` measures 10 million; whole pages leave nothing but directories
    figures = measure_index(entries=40 * PAGE_SLOTS, pods=4, rounds=1)
    assert figures.entries == 163_840
    assert 24 <= figures.bytes_per_entry < 25
    low, high = figures.inserts_per_s_spread
    assert low == figures.inserts_per_s == high > 0
    assert figures.replacing_inserts_per_s > 0
    assert figures.matches_per_s > 0


@pytest.mark.parametrize(("entries", "pods"), [(10, 4), (0, 1), (1, 1)])
def test_entries_that_cannot_be_divided(entries: int, pods: int) -> None:
    with pytest.raises(ValueError, match=f"{entries} entries cannot be divided among 2 tiers of {pods} pods"):
        measure_index(entries=entries, pods=pods)


def test_the_command_keeps_what_other_measurements_wrote(tmp_path: Path) -> None:
    out = tmp_path / "build" / "picker.json"
    options = [
        "--out",
        str(out),
        "--pods",
        "3",
        "--prompt-tokens",
        "200",
        "--entries",
        "2000",
        "--rounds",
        "2",
    ]
    assert "bytes an entry" in CliRunner().invoke(main, options, catch_exceptions=False).output
    first = json.loads(out.read_text())
    assert (first["pods"], first["prompt_tokens"]) == (3, 200)
    assert first["pick_p50_ms"] == first["pick"]["pick_p50_ms"]
    assert first["pick_p99_ms"] == first["pick"]["pick_p99_ms"]
    assert first["pick"]["rounds"] == first["index"]["rounds"] == 2
    assert first["index_bytes_per_entry"] >= first["index"]["bytes_per_entry"] > 24

    out.write_text(json.dumps({"through_envoy": [1], "hit_rate": {"a": 2}, "pods": 7, "pick": "old"}))
    CliRunner().invoke(main, options, catch_exceptions=False)
    second = json.loads(out.read_text())
    assert (second["through_envoy"], second["hit_rate"], second["pods"]) == ([1], {"a": 2}, 3)
    assert second.keys() == first.keys() | {"through_envoy", "hit_rate"}
