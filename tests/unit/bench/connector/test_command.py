"""`python -m tests.bench.connector`: the product's parts and those that are elsewhere."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.bench.connector import hit_rate
from tests.bench.connector.__main__ import NAMES, main, parts
from tests.bench.connector.hit_rate import Workload, loop

from kvtier_connector.bench.choices import ELSEWHERE, PARTS


def test_it_has_what_the_product_has_and_what_that_says_is_elsewhere() -> None:
    assert {*NAMES} == {*PARTS} | {*ELSEWHERE}
    assert not {*PARTS} & {*ELSEWHERE}
    light = tuple(name for name in ELSEWHERE if name != "never_slower")  # that needs vLLM at once
    assert tuple(parts(light, pairs=1, rounds=1, folder=Path())) == light


def test_a_part_is_printed_and_added_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(hit_rate, "WORKLOADS", (Workload("loop", loop, 200, (1024,)),))
    out = tmp_path / "connector.json"
    out.write_text('{"index": 1}')
    result = CliRunner().invoke(main, ["--only", "hit_rate", "--out", str(out)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "hit rate, loop, 1024 chunks" in result.output
    report = json.loads(out.read_text())
    assert report["index"] == 1
    assert report["hit_rate"][0].keys() == {"workload", "capacity_chunks", "kvtier", "lru", "arc", "optimal"}
