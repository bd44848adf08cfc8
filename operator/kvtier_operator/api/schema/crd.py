"""The CustomResourceDefinition, made from the models.

Kubernetes wants a *structural schema* (k8s.io/apiextensions-apiserver, structural schemas): OpenAPI v3.0 without
`$ref`, every node with one type, nothing but the type said of `metadata`. pydantic writes JSON Schema 2020-12; this
module translates.
"""

from typing import Any, Final

from pydantic.json_schema import GenerateJsonSchema, NoDefault
from pydantic_core import core_schema

from kvtier_operator.api.base import VALIDATIONS, ApiModel
from kvtier_operator.api.former import FORMER
from kvtier_operator.api.resource import GROUP, KIND, VERSION, KVCacheTier

Schema = dict[str, Any]
PLURAL: Final = "kvcachetiers"
SHORT_NAME: Final = "kvct"
CRD_NAME: Final = f"{PLURAL}.{GROUP}"
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
# JSON Schema's own words that OpenAPI v3.0 or a structural schema does not have.
_DROPPED: Final = ("title", "$defs", "const")
# The order in which a person reads a field.
_FIRST: Final = ("description", "type", "format", "default", "enum")
_LAST: Final = ("required", "properties", "items", "additionalProperties", VALIDATIONS)
_INT32_MAX: Final = 2**31 - 1
_READY: Final = '.status.conditions[?(@.type=="Ready")]'
_COLUMNS: Final = (
    {"name": "Model", "type": "string", "jsonPath": ".spec.model.name"},
    {"name": "Ready", "type": "string", "jsonPath": f"{_READY}.status"},
    {"name": "Reason", "type": "string", "jsonPath": f"{_READY}.reason", "description": "Why it is so"},
    {
        "name": "Engines",
        "type": "integer",
        "jsonPath": ".status.readyReplicas",
        "description": "Engine pods ready",
    },
    {
        "name": "Replicas",
        "type": "integer",
        "jsonPath": ".status.replicas",
        "description": "Engine pods, whoever scales them",
    },
    {
        "name": "URL",
        "type": "string",
        "jsonPath": ".status.router.url",
        "description": "Base URL for clients, with gateway provider standalone",
    },
    {
        "name": "CPU",
        "type": "string",
        "jsonPath": ".spec.tiers.cpu.capacity",
        "description": "CPU tier per engine pod",
    },
    {
        "name": "Disk",
        "type": "string",
        "jsonPath": ".spec.tiers.disk.capacity",
        "description": "Disk tier per engine pod",
        "priority": 1,
    },
    {"name": "Backend", "type": "string", "jsonPath": ".spec.backend", "priority": 1},
    {"name": "Picker", "type": "string", "jsonPath": ".spec.router.flavor", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
)


class _Generator(GenerateJsonSchema):
    """Writes out the default of every part that has defaults of its own.

    Kubernetes fills in fields only where their parent is there, and checks a default against the rules as it
    stands, without the defaults of what is below it.
    """

    def get_default_value(self, schema: core_schema.WithDefaultSchema) -> Any:  # noqa: ANN401 - pydantic's signature
        factory = schema.get("default_factory")
        if isinstance(factory, type) and issubclass(factory, ApiModel):
            return _without_empty(factory().model_dump(mode="json", by_alias=True, exclude_none=True))
        default = super().get_default_value(schema)
        return NoDefault if default is None else default


def _without_empty(value: Schema) -> Schema:
    """Lists and maps that nothing is in are not worth writing into every object."""
    filled = {key: _without_empty(item) if isinstance(item, dict) else item for key, item in value.items()}
    return {key: item for key, item in filled.items() if item not in ({}, [])}


def openapi_schema(*, with_former: bool = False) -> Schema:
    """The resource's structural schema.

    Args:
        with_former: Whether choices that are read but no longer written are among the others.
    """
    generated = KVCacheTier.model_json_schema(by_alias=True, schema_generator=_Generator)
    schema = _structural(generated, generated["$defs"], with_former=with_former)
    for name, purpose in (("apiVersion", f"{GROUP}/{VERSION}."), ("kind", f"{KIND}.")):
        schema["properties"][name] = {"type": "string", "description": purpose}
    schema["properties"]["metadata"] = {"type": "object"}
    schema["required"] = ["spec"]
    return schema


def crd() -> Schema:
    """The whole CustomResourceDefinition, as it goes into YAML."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": CRD_NAME},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": [SHORT_NAME],
                "categories": ["kvtier"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [dict(column) for column in _COLUMNS],
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.replicas",
                            "statusReplicasPath": ".status.replicas",
                            "labelSelectorPath": ".status.selector",
                        },
                    },
                    "schema": {"openAPIV3Schema": openapi_schema(with_former=True)},
                }
            ],
        },
    }


def _structural(node: Schema, definitions: dict[str, Schema], *, with_former: bool) -> Schema:
    """One node of JSON Schema and all below it as a structural schema."""

    def below(child: Schema) -> Schema:
        return _structural(child, definitions, with_former=with_former)

    node = _resolve(node, definitions)
    result = {key: value for key, value in node.items() if key not in _DROPPED}
    if properties := node.get("properties"):
        result["properties"] = {name: below(field) for name, field in properties.items()}
    former = result.pop(FORMER, [])
    if former and with_former:
        result["enum"] = [*result["enum"], *former]
    if "items" in node:
        result["items"] = below(node["items"])
    values = result.pop("additionalProperties", None)
    if isinstance(values, dict):
        result["additionalProperties"] = below(values)
    elif values is True:
        result[_PRESERVE] = True
    if "exclusiveMinimum" in result:
        result |= {"minimum": result["exclusiveMinimum"], "exclusiveMinimum": True}
    if result.get("type") == "integer":
        result["format"] = "int32" if result.get("maximum", 2**63) <= _INT32_MAX else "int64"
    return _in_order(result)


def _in_order(node: Schema) -> Schema:
    middle = [key for key in node if key not in (*_FIRST, *_LAST)]
    return {key: node[key] for key in (*_FIRST, *middle, *_LAST) if key in node}


def _resolve(node: Schema, definitions: dict[str, Schema]) -> Schema:
    """The node without `$ref` and without "or null"; what it says itself wins over what it refers to."""
    choices = [choice for choice in node.get("anyOf", []) if choice.get("type") != "null"]
    if len(choices) == 1:
        node = {**choices[0], **{key: value for key, value in node.items() if key != "anyOf"}}
    if "$ref" not in node:
        return node
    referred = _resolve(definitions[node["$ref"].removeprefix("#/$defs/")], definitions)
    own = {key: value for key, value in node.items() if key != "$ref"}
    rules = [*referred.get(VALIDATIONS, []), *own.pop(VALIDATIONS, [])]
    return {**referred, **own, **({VALIDATIONS: rules} if rules else {})}
