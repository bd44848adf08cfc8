"""Options of several names: separated by commas, repeated, each once."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kvtier_connector.bench import choices
from kvtier_connector.bench.choices import DEMO, SHAPES, names_of, names_shown, shape_of
from kvtier_connector.bench.load import kv_bytes_per_token
from kvtier_operator.planning.model_shape.catalogue import entries
from kvtier_operator.planning.model_shape.from_catalogue import shape_from_catalogue

KNOWN = ("ttft", "workloads", "disk")


@click.command()
@click.option("--only", multiple=True, callback=names_of(KNOWN), metavar=names_shown(KNOWN))
def command(only: tuple[str, ...]) -> None:
    click.echo(" ".join(only))


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ([], ""),
        (["--only", "ttft"], "ttft"),
        (["--only", "ttft,workloads"], "ttft workloads"),
        (["--only", "workloads", "--only", "ttft"], "workloads ttft"),
        (["--only", "disk, ttft", "--only", "ttft"], "disk ttft"),
    ],
)
def test_names_in_the_order_given(arguments: list[str], names: str) -> None:
    assert CliRunner().invoke(command, arguments).output.strip() == names


@pytest.mark.parametrize("given", ["ttf", "ttft,", "", "ttft workloads"])
def test_another_name_ends_it_with_those_that_are_known(given: str) -> None:
    result = CliRunner().invoke(command, ["--only", given])
    assert result.exit_code == 2
    assert "is not one of 'ttft', 'workloads', 'disk'." in result.output


def test_help_lists_them() -> None:
    assert "--only [ttft|workloads|disk],..." in CliRunner().invoke(command, ["--help"]).output


TABLE = Path(choices.__file__).with_name("shapes.json")
LAST_TOKEN = 16_010
"""That prompts are made of (bench/engine.py, bench/scaling.py)."""


@pytest.mark.parametrize(
    ("name", "bytes_per_token"),
    [("demo", 4_096), ("qwen3-8b", 147_456), ("qwen3-32b", 262_144), ("llama-3.1-8b", 131_072)],
)
def test_bytes_of_a_token(name: str, bytes_per_token: int) -> None:
    assert kv_bytes_per_token(dict(SHAPES[name].config), 2) == bytes_per_token


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_has_what_an_engine_asks_for(name: str) -> None:
    config = SHAPES[name].config
    assert {"architectures", "model_type", "hidden_size", "intermediate_size", "torch_dtype"} <= config.keys()
    assert config["vocab_size"] > LAST_TOKEN
    assert config["max_position_embeddings"] >= 15_400 + 64
    assert config["num_attention_heads"] % config["num_key_value_heads"] == 0


def test_a_shape_is_a_line() -> None:
    lines = TABLE.read_text().splitlines()
    assert [line.split('"')[1] for line in lines[1:-1]] == list(SHAPES)


@pytest.mark.parametrize("name", [name for name in SHAPES if name != DEMO])
def test_it_is_the_model_that_the_planner_knows(name: str) -> None:
    first, *others = SHAPES[name].models
    assert set(others) <= set(entries()[first].get("aliases", ()))
    for field, value in entries()[first]["config"].items():
        assert SHAPES[name].config[field] == value, field
    assert shape_from_catalogue(first) is not None


def test_a_model_has_its_shape_in_any_case() -> None:
    assert shape_of("qwen/QWEN3-8B") == "qwen3-8b"
    assert shape_of("meta-llama/Llama-3.1-8B-Instruct") == "llama-3.1-8b"
    assert shape_of("nobody/knows") is None
