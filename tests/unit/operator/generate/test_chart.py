"""What of the chart can be held without Helm; the rest is in tests/cluster/install."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from kvtier_common.version import KVTIER_VERSION
from kvtier_operator.generate.chart.values import Values
from kvtier_operator.install.settings import Installation
from kvtier_operator.planning.images import IMAGE_NAMES
from kvtier_operator.reconcile.__main__ import main

ROOT = Path(__file__).parents[4]
CHART = ROOT / "charts" / "tiered-prefix-cache"
SCHEMA = json.loads((CHART / "values.schema.json").read_text())


def test_the_values_file_has_the_defaults() -> None:
    written = yaml.safe_load((CHART / "values.yaml").read_text())
    assert written == Values().model_dump(by_alias=True, mode="json")


@pytest.mark.parametrize("path", sorted((CHART / "ci").glob("*.yaml")), ids=lambda path: path.stem)
def test_values_for_the_tests_are_valid(path: Path) -> None:
    Values.model_validate(yaml.safe_load(path.read_text()))


@pytest.mark.parametrize("image", ["https://a.example/b:1", "a/B:1", "a/b:1,c/d:1", "a/b@sha256:0"])
def test_what_no_kubelet_takes_for_an_image_is_refused(image: str) -> None:
    with pytest.raises(ValidationError, match=r"images\.engine"):
        Values.model_validate({"images": {"engine": image}})


def test_the_version_is_the_distribution_s() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == KVTIER_VERSION
    assert Installation().image.endswith(f":{KVTIER_VERSION}")


def test_every_value_that_a_template_reads_is_there() -> None:
    templates = [path.read_text() for path in (CHART / "templates").iterdir()]
    read = {path for text in templates for path in re.findall(r"\$\.Values\.([\w.]+)", text)}
    assert read
    assert [path for path in sorted(read) if not _has(Values().model_dump(by_alias=True), path)] == []


def _has(values: dict[str, Any], path: str) -> bool:
    key, _, rest = path.partition(".")
    return key in values and (not rest or _has(values[key], rest))


def test_every_value_is_read() -> None:
    text = "".join(path.read_text() for path in (CHART / "templates").iterdir())
    sections = {
        name: value
        for name, value in Values().model_dump(by_alias=True).items()
        if name not in {"image", "images", "global", "admissionPolicy", "attach"}
    }
    leaves = [
        f"{name}.{key}" if isinstance(value, dict) and value else name
        for name, value in sections.items()
        for key in (value if isinstance(value, dict) and value else [""])
    ]
    assert [leaf for leaf in leaves if f"$.Values.{leaf}" not in text] == []


def test_a_tier_s_schema_is_the_crd_s() -> None:
    spec = SCHEMA["$defs"]["Tier"]["properties"]["spec"]
    assert spec["required"] == ["tiers"]
    assert spec["additionalProperties"] is False
    capacity = spec["properties"]["tiers"]["properties"]["cpu"]["properties"]["capacity"]
    assert capacity["type"] == ["integer", "string"]
    assert all(re.search(capacity["pattern"], text) for text in ("100Gi", "1.5T", "1e3", "100"))
    assert not any(re.search(capacity["pattern"], text) for text in ("100GB", "100 Gi", "50%", ""))
    assert spec["properties"]["engine"]["properties"]["affinity"].get("additionalProperties", True)
    assert SCHEMA["properties"]["picker"]["properties"]["flavor"]["enum"] == ["llm-d", "gaie", "builtin"]
    assert "x-kubernetes" not in json.dumps(SCHEMA)


def test_every_option_of_the_operator_has_a_value() -> None:
    """So that nobody needs arguments of their own; the chart's probes and Services know the ports."""
    text = (CHART / "templates" / "deployment.yaml").read_text()
    set_by_values = set(re.findall(r"name: KVTIER_(\w+)\n +value: \{\{", text))
    options = {(option.name or "").upper() for option in main.params}
    assert options - set_by_values == {"METRICS_PORT", "HEALTH_PORT"}


def test_every_image_has_a_value() -> None:
    assert set(SCHEMA["$defs"]["Images"]["properties"]) == set(IMAGE_NAMES)
