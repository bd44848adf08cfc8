import json
import re
from collections.abc import Iterator

import pytest

from kvtier_operator.api.schema.crd import CRD_NAME, Schema, crd, openapi_schema
from kvtier_operator.api.schema.reference import reference

# What kubectl apply keeps in an annotation (k8s.io/apimachinery, TotalAnnotationSizeLimitB).
_APPLY_ANNOTATION_LIMIT = 256 * 1024
# One type for each node, except where Kubernetes takes an extension in its place.
_TYPES = {"object", "array", "string", "integer", "number", "boolean"}
# JSON Schema's words that a structural schema of v3.0 does not have, or that people cannot read.
_FOREIGN = {
    "$ref",
    "$defs",
    "anyOf",
    "oneOf",
    "allOf",
    "const",
    "title",
    "nullable",
    "propertyNames",
    "examples",
}


def _nodes(node: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    yield path, node
    for name, field in node.get("properties", {}).items():
        yield from _nodes(field, f"{path}.{name}")
    for word, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(node.get(word), dict):
            yield from _nodes(node[word], f"{path}{mark}")


NODES = dict(_nodes(openapi_schema()))
FIELDS = {path: node for path, node in NODES.items() if path and not path.endswith(("[]", "{}"))}


def test_has_nothing_that_a_structural_schema_has_not() -> None:
    assert {path: words for path, node in NODES.items() if (words := _FOREIGN & set(node))} == {}


def test_every_node_has_one_type() -> None:
    typed = {path: node.get("type") in _TYPES for path, node in NODES.items()}
    special = {path: "x-kubernetes-int-or-string" in node for path, node in NODES.items()}
    assert [path for path in NODES if typed[path] == special[path]] == []


def test_says_nothing_of_metadata() -> None:
    assert NODES[".metadata"] == {"type": "object"}


def test_every_list_says_how_it_merges() -> None:
    lists = {path: node for path, node in NODES.items() if node.get("type") == "array"}
    assert ".spec.engine.env" in lists
    assert [path for path, node in lists.items() if "items" not in node] == []
    assert [path for path, node in lists.items() if "x-kubernetes-list-type" not in node] == []


def test_every_field_is_described_in_sentences() -> None:
    described = re.compile(r"[^\s].*\.", re.DOTALL)
    wrong = [path for path, node in FIELDS.items() if not described.fullmatch(node.get("description", ""))]
    assert wrong == [".metadata"]


def test_everything_a_user_writes_is_bounded() -> None:
    """The API server estimates what a CEL rule may cost from the bounds."""
    written = {path: node for path, node in NODES.items() if path.startswith(".spec") and "enum" not in node}
    assert [path for path, node in written.items() if not _is_bounded(node)] == []


def _is_bounded(node: Schema) -> bool:
    match node:
        case {"type": "string"} | {"x-kubernetes-int-or-string": True}:
            return "maxLength" in node
        case {"type": "array"}:
            return "maxItems" in node
        case {"additionalProperties": _}:
            return "maxProperties" in node
        case {"type": "integer" | "number"}:
            return {"minimum", "maximum"} <= set(node)
        case _:
            return True


def test_a_part_s_default_has_the_defaults_of_what_is_below() -> None:
    """Kubernetes checks a default against the rules as it stands."""
    parts = {path: node for path, node in FIELDS.items() if isinstance(node.get("default"), dict)}
    assert ".spec.router.weights" in parts
    for path, node in parts.items():
        below = {name: field["default"] for name, field in node["properties"].items() if field.get("default")}
        assert node["default"].items() >= below.items(), path


def test_is_small_enough_for_kubectl_apply() -> None:
    assert len(json.dumps(crd())) < _APPLY_ANNOTATION_LIMIT


def test_names_columns_and_subresources() -> None:
    spec = crd()["spec"]
    version = spec["versions"][0]
    assert crd()["metadata"] == {"name": CRD_NAME}
    assert spec["names"]["shortNames"] == ["kvct"]
    assert spec["names"]["categories"] == ["kvtier"]
    assert set(version["subresources"]) == {"status", "scale"}
    assert [column["name"] for column in version["additionalPrinterColumns"] if "priority" not in column] == [
        "Model",
        "Ready",
        "Reason",
        "Engines",
        "Replicas",
        "URL",
        "CPU",
        "Age",
    ]


def test_lists_with_keys_are_maps() -> None:
    assert NODES[".spec.engine.env"]["x-kubernetes-list-map-keys"] == ["name"]
    assert NODES[".status.conditions"]["x-kubernetes-list-map-keys"] == ["type"]


@pytest.mark.parametrize(
    "path", [".spec.engine.affinity", ".spec.engine.env[].valueFrom", ".spec.tiers.disk.volume.emptyDir"]
)
def test_what_a_pod_takes_passes_through(path: str) -> None:
    assert NODES[path]["x-kubernetes-preserve-unknown-fields"] is True


def test_the_only_rule_over_time_is_the_models_name() -> None:
    over_time = {
        path: rule["rule"]
        for path, node in NODES.items()
        for rule in node.get("x-kubernetes-validations", ())
        if "oldSelf" in rule["rule"]
    }
    assert over_time == {".spec.model.name": "self == oldSelf"}


def test_reference_has_every_field() -> None:
    text = reference(openapi_schema())
    fields = [path.removeprefix(".").replace("{}", "") for path in FIELDS if path.count(".") > 1]
    assert "spec.engine.env[].name" in fields
    assert [path for path in fields if f"| `{path}` |" not in text] == []
