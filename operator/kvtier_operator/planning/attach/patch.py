"""The difference of two objects as patches for kustomize, beside those of other components.

What is new as a whole, such as annotations of a pod that has none, is merged: a JSON patch (RFC 6902) would
replace what another component added there. All else is a JSON patch, which tests what it changes.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

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


_MERGED_BY_NAME: Final = frozenset({"", "apps", "batch"})
"""API groups whose lists kustomize merges; of those that it has no schema for it replaces them."""
_LISTS: Final = frozenset({"env", "initContainers", "volumeMounts", "volumes"})
"""Lists that are merged item by item, of what the tiers add."""


def kustomize_patches(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Entries of a kustomization's `patches`: at most one that merges and a JSON patch."""
    group, _, version = str(before.get("apiVersion", "")).rpartition("/")
    metadata = mapping(before.get("metadata"))
    target = {
        "group": group,
        "version": version,
        "kind": before.get("kind"),
        "name": metadata.get("name"),
        "namespace": metadata.get("namespace"),
    }
    named = {name: value for name, value in target.items() if value}
    merge, operations = _split(json_patch(before, after), before, by_name=group in _MERGED_BY_NAME)
    if operations:  # first: it tests that the containers are those
        text = ",\n".join(json.dumps(operation) for operation in operations)
        yield {"target": named, "patch": f"[\n{text}\n]\n"}
    if merge:
        head = {
            "apiVersion": before.get("apiVersion"),
            "kind": before.get("kind"),
            "metadata": {"name": metadata.get("name"), **merge.pop("metadata", {})},
        }
        yield {"target": named, "patch": f"{json.dumps({**head, **merge}, indent=1)}\n"}


def _split(
    operations: Iterable[Operation], before: Mapping[str, Any], *, by_name: bool
) -> tuple[dict[str, Any], list[Operation]]:
    """What is merged, as an object, and the operations that are left."""
    merge: dict[str, Any] = {}
    left = []
    for operation in operations:
        path = [_unescape(name) for name in operation["path"].split("/")[1:]]
        if _can_merge(operation, path, before, by_name=by_name):
            _put(merge, path, before, operation["value"])
        else:
            left.append(operation)
    return merge, left


def _can_merge(operation: Operation, path: list[str], before: Any, *, by_name: bool) -> bool:  # noqa: ANN401 - JSON
    """Whether it adds a whole map, or a list whose items have names, where a merge finds the place."""
    *parents, last = path
    for name in parents:
        if isinstance(before, list):
            if not (by_name and "name" in mapping(before[int(name)])):
                return False
            before = before[int(name)]
        else:
            before = before[name]
    value = operation["value"]
    is_map = isinstance(value, dict) or (by_name and last in _LISTS)
    return operation["op"] == "add" and isinstance(before, dict) and is_map


def _put(merge: Any, path: list[str], before: Any, value: Any) -> None:  # noqa: ANN401 - JSON
    """Writes a value at a path of `before` into the merge, whose list items are known by their names."""
    *parents, last = path
    for name in parents:
        if isinstance(before, list):
            before = before[int(name)]
            item = next((item for item in merge if item["name"] == before["name"]), None)
            if item is None:
                item = {"name": before["name"]}
                merge.append(item)
            merge = item
        else:
            before = before[name]
            merge = merge.setdefault(name, [] if isinstance(before, list) else {})
    merge[last] = value


def _unescape(name: str) -> str:
    return name.replace("~1", "/").replace("~0", "~")
