"""Resources that nobody thought of: a good one with a few fields of any value."""

import copy
from collections.abc import Iterator
from typing import Any, Final

from hypothesis import strategies as st
from tests.cases.kvcachetier import ACCEPTED, document

from kvtier_operator.api.schema.crd import Schema, openapi_schema

VALUES = [
    None,
    True,
    0,
    1,
    -1,
    2,
    16,
    1.5,
    0.5,
    2**31,
    2**62,
    "",
    "x",
    "Off",
    "Prefer",
    "2Mi",
    "1Gi",
    "1e3",
    "-1",
]
CONTAINERS = [
    [],
    ["a"],
    ["a", "a"],
    {},
    {"a": "b"},
    {"a": 1},
    {"name": "a"},
    [{"name": "a"}, {"name": "a"}],
    [None],
]

_OF_TYPE: Final[dict[str, list[object]]] = {
    "string": ["/x", "v1.2", "pvc://a/b", "pvc://a/..", "oci://a:1#b", "file:///a/.", "s3://a"],
    "boolean": [True],
    "integer": [1, 2],
    "object": [{}],
    "array": [[]],
}


def _paths(node: Schema, path: str) -> Iterator[tuple[str, list[object]]]:
    """Every field that is no list item, with values that its schema says or nearly says."""
    for name, field in node.get("properties", {}).items():
        below = f"{path}.{name}"
        likely = [
            *field.get("enum", ()),
            field.get("minimum"),
            field.get("maximum"),
            *_OF_TYPE.get(str(field.get("type")), []),
        ]
        yield below, [value for value in likely if value is not None] or ["1Gi", 2**30]
        yield from _paths(field, below)


FIELDS = dict(_paths(openapi_schema()["properties"]["spec"], "spec"))


@st.composite
def _changes(draw: st.DrawFn) -> dict[str, object]:
    changes = {}
    for path in draw(st.lists(st.sampled_from(sorted(FIELDS)), min_size=1, max_size=3, unique=True)):
        likely, any_value = st.sampled_from(FIELDS[path]), st.sampled_from([*VALUES, *CONTAINERS])
        changes[path] = copy.deepcopy(draw(st.one_of(likely, likely, any_value)))
    return changes


@st.composite
def resources(draw: st.DrawFn) -> dict[str, Any]:
    """A whole resource, which may be refused."""
    resource = document(draw(st.sampled_from([{}, ACCEPTED["everything"]])))
    for path, value in draw(_changes()).items():
        *parents, name = path.split(".")
        place: object = resource
        for parent in parents:
            place = place.setdefault(parent, {}) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place[name] = value
    return resource
