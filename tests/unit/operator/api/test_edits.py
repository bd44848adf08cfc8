"""Single fields of a document, set by their paths."""

from typing import Any

import pytest

from kvtier_operator.api.edits import Edit, apply_edits, parse_edit
from kvtier_operator.errors import InvalidInputError

DOCUMENT: dict[str, Any] = {
    "spec": {"engine": {"extraArgs": ["--seed", "1"], "nodeSelector": {"zone": "a"}}, "tiers": None}
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("spec.engine.extraArgs[1]=2", ["--seed", 2]),
        ('spec.engine.extraArgs[2]="--x=y"', ["--seed", "1", "--x=y"]),
        ("spec.engine.nodeSelector[kubernetes.io/arch]=arm64", {"zone": "a", "kubernetes.io/arch": "arm64"}),
        ("spec.engine.nodeSelector.zone=null", {"zone": None}),
        ("spec.engine.nodeSelector.zone=", {"zone": None}),
        ("spec.tiers.disk.volume={emptyDir: {}}", {"disk": {"volume": {"emptyDir": {}}}}),
    ],
)
def test_a_field_is_set_and_the_document_left_alone(text: str, value: object) -> None:
    changed = apply_edits(DOCUMENT, [parse_edit(text, "--set")], "cr.yaml")
    engine = changed["spec"]["engine"]
    part = next(name for name in ("extraArgs", "nodeSelector", "tiers") if name in text)
    assert (engine.get(part) or changed["spec"].get(part)) == value
    assert DOCUMENT["spec"]["engine"]["extraArgs"] == ["--seed", "1"]
    assert DOCUMENT["spec"]["tiers"] is None


def test_a_default_gives_way() -> None:
    edits = [Edit("spec.engine.nodeSelector", {}, if_absent=True), Edit("spec.tiers", 1, if_absent=True)]
    changed = apply_edits(DOCUMENT, edits, "cr.yaml")["spec"]
    assert (changed["engine"]["nodeSelector"], changed["tiers"]) == ({"zone": "a"}, 1)


@pytest.mark.parametrize(
    "text", ["", "=1", "spec", "spec..a=1", "spec.[=1", "spec.a]=1", "spec.a=[1", "status.x=1"]
)
def test_what_sets_nothing(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^--set: "):
        parse_edit(text, "--set")


@pytest.mark.parametrize(
    "path",
    ["spec.engine.extraArgs[3]", "spec.engine.extraArgs.first", "spec.engine.extraArgs[0].x", "spec[0]"],
)
def test_a_way_that_leads_nowhere(path: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        apply_edits(DOCUMENT, [Edit(path, 1)], "cr.yaml")
    assert str(refused.value).startswith(f"cr.yaml: {path}: ")
