"""The resource that a newcomer begins with."""

import re

import pytest
import yaml

from kvtier_operator.api.edits import Edit, apply_edits
from kvtier_operator.api.first_resource import commented_yaml, first_document, resource_name
from kvtier_operator.api.parse import parse_resource


def document() -> dict[str, object]:
    return apply_edits(first_document("Qwen/Qwen3-32B"), [Edit("spec.tiers.cpu.capacity", "100Gi")], "case")


def test_it_reads_as_what_it_was_made_of() -> None:
    words = ["--x", "yes", "1", "a: b", "#", '"', "100Gi", "1e3"]
    changed = apply_edits(document(), [Edit("spec.engine.extraArgs", words)], "case")
    [read] = yaml.safe_load_all(commented_yaml(changed))
    assert parse_resource(read, "case") == parse_resource(changed, "case")
    assert read["spec"]["engine"]["extraArgs"] == words


def test_what_it_suggests_can_be_taken() -> None:
    taken = re.sub(r"^( *)#(?! )", r"\1", commented_yaml(document()), flags=re.MULTILINE)
    spec = parse_resource(yaml.safe_load(taken), "case").spec
    assert (spec.replicas, spec.engine.tensor_parallel_size, spec.tiers.disk is None) == (2, 2, False)
    assert max(map(len, taken.splitlines())) <= 100


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Qwen/Qwen3-32B", "qwen3-32b"),
        ("meta-llama/Llama-3.1-8B", "llama-3-1-8b"),
        ("01-ai/01.ai", "ai"),
        ("/models/x_y", "x-y"),
        ("深度/模型", "model"),
        ("a/" + "b" * 60, "b" * 48),
    ],
)
def test_it_is_called_after_its_model(model: str, name: str) -> None:
    assert resource_name(model) == name
