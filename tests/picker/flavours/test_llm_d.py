"""Every llm-d configuration that kvtier renders is one that llm-d-router's types and loader would take."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

import pytest
import yaml
from tests.picker.flavours.inputs import EXAMPLE, INPUTS
from tests.picker.flavours.llm_d_model import API_VERSION, VERSIONS, load

from kvtier_scorer.config.flavors import picker_config
from kvtier_scorer.config.model import PickerInput

GOLDEN = Path(__file__).parents[2] / "unit" / "operator" / "golden" / "output"


@cache
def golden_configs() -> dict[str, str]:
    """The EndpointPickerConfigs in the golden objects that are llm-d-router's."""
    found = {}
    for path in sorted(GOLDEN.glob("*/objects.yaml")):
        for document in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader):
            for text in (document.get("data") or {}).values() if document["kind"] == "ConfigMap" else ():
                if f"apiVersion: {API_VERSION}\n" in text:
                    found[path.parent.name] = text
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("asked", INPUTS.values(), ids=INPUTS)
def test_rendered_configuration_is_taken(version: str, asked: PickerInput) -> None:
    load(version, picker_config("llm-d", replace(asked, version=version)).text)


@pytest.mark.parametrize("name", golden_configs())
def test_golden_configuration_is_taken(name: str) -> None:
    load("0.10", golden_configs()[name])


def test_some_golden_resources_have_one() -> None:
    assert len(golden_configs()) >= 3


def broken(where: str, change: object) -> str:
    """The example's configuration with a change at a path such as `plugins.0.weight`; None removes."""
    document = yaml.safe_load(picker_config("llm-d", EXAMPLE).text)
    *path, last = where.split(".")
    target = document
    for step in path:
        target = target[int(step) if step.isdigit() else step]
    target[int(last) if last.isdigit() else last] = change
    return yaml.safe_dump(document)


REFUSED: Final[tuple[tuple[str, object], ...]] = (
    ("schedulingProfile", []),
    ("plugins.0.weight", 1),
    ("plugins.0.type", "queue-depth-scorer"),
    ("plugins.1.name", "queue-scorer"),
    ("plugins.2.parameters.lruCapacity", 1),
    ("plugins.2.parameters.lruCapacityPerServer", "many"),
    ("plugins.2.parameters.maxPrefixTokensToMatch", -1),
    ("plugins.3.parameters.prefixMatchInfoProducerName", "none-of-that-name"),
    ("schedulingProfiles.0.plugins.0.pluginRef", "none-of-that-name"),
    ("schedulingProfiles.0.plugins.0.weight", "2"),
    ("schedulingProfiles.0.name", ""),
    ("apiVersion", "llm-d.ai/v1"),
    ("flowControl", {"maxRequest": 1}),
    ("dataLayer", {"source": []}),
)


@pytest.mark.parametrize(("where", "change"), REFUSED)
def test_what_the_picker_would_refuse_is_refused(where: str, change: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - pydantic's, one for each kind of mistake
        load("0.10", broken(where, change))


def test_a_field_of_0_10_is_refused_by_0_9() -> None:
    for where, change in (
        ("plugins.3.parameters.matchLengthWeight", 0.5),
        ("flowControl", {"enableEviction": True}),
    ):
        text = broken(where, change)
        load("0.10", text)
        with pytest.raises(ValueError, match="Extra inputs"):
            load("0.9", text)
