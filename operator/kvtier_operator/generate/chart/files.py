"""The generated part of charts/tiered-prefix-cache: path from the repository's root, and text."""

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import BaseModel

from kvtier_common.version import KVTIER_VERSION, PAGES_URL, REPOSITORY_URL
from kvtier_operator.api.quantity import PATTERN
from kvtier_operator.api.schema.crd import openapi_schema
from kvtier_operator.generate.chart.templates import templates
from kvtier_operator.generate.chart.values import SOURCE, Values
from kvtier_operator.generate.yaml_text import notice, yaml_text

CHART_NAME: Final = "tiered-prefix-cache"
OLDEST_KUBERNETES: Final = "1.31"
"""Helm refuses to install on an older one."""
_HERE: Final = "operator/kvtier_operator/generate/chart/files.py"
# Also Helm 3's older validators know it.
_DRAFT: Final = "http://json-schema.org/draft-07/schema#"
_KUBERNETES: Final = "x-kubernetes-"
_QUANTITY: Final = "x-kubernetes-int-or-string"
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
_SUBSCHEMAS: Final = ("items", "additionalProperties")
_WIDTH: Final = 110
_INTRODUCTION: Final = Path(__file__).with_name("introduction.md")


def chart_files() -> dict[str, str]:
    """Every generated file of the chart."""
    files = {
        "Chart.yaml": f"# {notice(_HERE)}\n{yaml_text(chart_document())}",
        "values.yaml": "\n".join([f"# {notice(SOURCE)}", *_lines(Values(), "")]) + "\n",
        "values.schema.json": _schema_text(),
        "README.md": _readme(),
        **{f"templates/{name}": text for name, text in templates().items()},
    }
    return {f"charts/{CHART_NAME}/{name}": text for name, text in files.items()}


def chart_document() -> dict[str, Any]:
    """The file as plain values."""
    return {
        "apiVersion": "v2",
        "name": CHART_NAME,
        "description": "A prefix cache beyond the GPU for vLLM, from one KVCacheTier resource",
        "type": "application",
        "version": KVTIER_VERSION,
        "appVersion": KVTIER_VERSION,
        "kubeVersion": f">={OLDEST_KUBERNETES}.0-0",
        # neither icon nor maintainers: there is no picture, and whoever publishes it names its maintainers
        "home": PAGES_URL,
        "sources": [REPOSITORY_URL],
        "keywords": ["vllm", "kv-cache", "prefix-cache", "llm", "inference"],
    }


def _schema_text() -> str:
    """The whole file. What only CEL can say is left to the API server."""
    schema = Values.model_json_schema(by_alias=True)
    spec = _json_schema(openapi_schema()["properties"]["spec"])
    tier = schema["$defs"]["Tier"]["properties"]
    tier["spec"] = spec
    schema["properties"]["picker"] |= spec["properties"]["router"] | {
        "description": schema["properties"]["picker"]["description"]
    }
    document = {"$comment": notice(SOURCE), "$schema": _DRAFT, **schema}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _json_schema(node: dict[str, Any]) -> dict[str, Any]:
    """A node of the CRD's schema, which is OpenAPI v3.0, as JSON Schema that allows no unknown fields."""
    kept = {key: value for key, value in node.items() if not key.startswith(_KUBERNETES) and key != "format"}
    if kept.pop("exclusiveMinimum", False):
        kept["exclusiveMinimum"] = kept.pop("minimum")
    if node.get(_QUANTITY):
        kept |= {"type": ["integer", "string"], "pattern": PATTERN}
    if "properties" in node:
        kept["properties"] = {name: _json_schema(field) for name, field in node["properties"].items()}
        kept["additionalProperties"] = bool(node.get(_OPEN))
    for key in _SUBSCHEMAS:
        if isinstance(node.get(key), dict):
            kept[key] = _json_schema(node[key])
    return kept


def _lines(model: BaseModel, indent: str) -> Iterator[str]:
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if not indent:
            yield ""
        yield from textwrap.wrap(
            field.description or "", _WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# "
        )
        if isinstance(value, BaseModel):
            yield f"{indent}{field.alias}:"
            yield from _lines(value, f"{indent}  ")
        else:
            yield from _entry(str(field.alias), value, indent)


def _entry(key: str, value: Any, indent: str) -> Iterator[str]:  # noqa: ANN401 - any value of YAML
    if not value or not isinstance(value, dict | list):
        yield f"{indent}{key}: {json.dumps(value)}"
        return
    yield f"{indent}{key}:"
    yield textwrap.indent(yaml.safe_dump(value, sort_keys=False).rstrip("\n"), f"{indent}  ")


def _readme() -> str:
    """The whole page."""
    rows = "".join(
        f"| `{key}` | `{json.dumps(value, separators=(', ', ': '))}` | {about} |\n"
        for key, value, about in _rows(Values(), "")
    )
    table = f"## Values\n\n| Value | Default | Description |\n|---|---|---|\n{rows}"
    return f"<!-- {notice(SOURCE)} -->\n{_INTRODUCTION.read_text(encoding='utf-8')}\n{table}"


def _rows(model: BaseModel, prefix: str) -> Iterator[tuple[str, object, str]]:
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from _rows(value, f"{prefix}{field.alias}.")
        else:
            yield f"{prefix}{field.alias}", value, (field.description or "").replace("|", "\\|")
