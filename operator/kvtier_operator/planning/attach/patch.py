"""The difference of two objects as a JSON patch (RFC 6902), for kustomize; of lists whole items are added."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kvtier_operator.planning.base.label_selector import mapping

Operation = dict[str, Any]


def json_patch(before: object, after: object, path: str = "") -> Iterator[Operation]:
    """What makes `after` of `before`, of which nothing was taken away; lists grow at their ends alone.

    Items of lists that change are tested by their names, and values by what they were: nothing is applied to
    another manifest.
    """
    match before, after:
        case dict(), dict():
            for name, value in after.items():
                below = f"{path}/{_escape(str(name))}"
                if name not in before or (before[name] is None and value is not None):
                    yield {"op": "add", "path": below, "value": value}
                else:
                    yield from json_patch(before[name], value, below)
        case list(), list():
            yield from _of_lists(before, after, path)
        case _ if before != after:
            yield {"op": "test", "path": path, "value": before}
            yield {"op": "replace", "path": path, "value": after}


def _of_lists(before: list[Any], after: list[Any], path: str) -> Iterator[Operation]:
    new = len(after) - len(before)
    if new > 0 and after[new:] == before:
        yield from ({"op": "add", "path": f"{path}/{place}", "value": after[place]} for place in range(new))
        return
    for place, (old, item) in enumerate(zip(before, after, strict=False)):
        if old != item and "name" in mapping(old):
            yield {"op": "test", "path": f"{path}/{place}/name", "value": old["name"]}
        yield from json_patch(old, item, f"{path}/{place}")
    yield from ({"op": "add", "path": f"{path}/-", "value": item} for item in after[len(before) :])


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def kustomize_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """One entry of a kustomization's `patches`: the target and the operations, as JSON."""
    group, _, version = str(before.get("apiVersion", "")).rpartition("/")
    metadata = mapping(before.get("metadata"))
    target = {
        "group": group,
        "version": version,
        "kind": before.get("kind"),
        "name": metadata.get("name"),
        "namespace": metadata.get("namespace"),
    }
    operations = ",\n".join(json.dumps(operation) for operation in json_patch(before, after))
    return {
        "target": {name: value for name, value in target.items() if value},
        "patch": f"[\n{operations}\n]\n",
    }
