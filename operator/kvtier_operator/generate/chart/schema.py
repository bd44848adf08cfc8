"""values.schema.json: Helm refuses values that the chart, or the API server later on, would not take."""

import json
from typing import Any, Final

from kvtier_operator.api.schema.crd import openapi_schema
from kvtier_operator.generate.chart.values import SOURCE, Values
from kvtier_operator.generate.notice import notice

# Also Helm 3's older validators know it.
_DRAFT: Final = "http://json-schema.org/draft-07/schema#"
_KUBERNETES: Final = "x-kubernetes-"
_QUANTITY: Final = "x-kubernetes-int-or-string"
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
_SUBSCHEMAS: Final = ("items", "additionalProperties")


def schema_text() -> str:
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
        kept["type"] = ["integer", "string"]
    if "properties" in node:
        kept["properties"] = {name: _json_schema(each) for name, each in node["properties"].items()}
        kept["additionalProperties"] = bool(node.get(_OPEN))
    for key in _SUBSCHEMAS:
        if isinstance(node.get(key), dict):
            kept[key] = _json_schema(node[key])
    return kept
