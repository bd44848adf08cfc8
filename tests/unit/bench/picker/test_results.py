import json
from pathlib import Path

import click
import pytest
from tests.bench.picker.results import merge


def test_other_measurements_in_the_file_stay(tmp_path: Path) -> None:
    out = tmp_path / "made" / "picker.json"
    merge(out, {"hit_rate": {"a": 1}})
    out.write_text(json.dumps({"pods": 3, "hit_rate": {"old": 1}}))
    merge(out, {"hit_rate": {"new": 2}})
    assert json.loads(out.read_text()) == {"pods": 3, "hit_rate": {"new": 2}}


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_file_that_holds_something_else_is_left_alone(tmp_path: Path, text: str) -> None:
    out = tmp_path / "picker.json"
    out.write_text(text)
    with pytest.raises(click.ClickException, match="move it away"):
        merge(out, {})
    assert out.read_text() == text
