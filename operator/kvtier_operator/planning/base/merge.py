"""Kubernetes' strategic merge, of a patch into a pod template."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

MERGE_KEYS: Final[Mapping[str, str]] = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "env": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
}
"""Lists that are merged item by item, and by which of their fields; other lists are replaced as a whole.

Source: k8s.io/api/core/v1/types.go, patchMergeKey.
"""
DIRECTIVE: Final = "$patch"
REPLACE: Final = "replace"


def merged(there: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """What is there with the patch's fields; what neither names stays, and new items of lists come last.

    Args:
        there: A pod template, or a part of one.
        patch: Of the same; one with `$patch: replace` takes its place.
    """
    if patch.get(DIRECTIVE) == REPLACE:
        return merged({}, {name: value for name, value in patch.items() if name != DIRECTIVE})
    return {**there, **{name: _value(there.get(name), value, name) for name, value in patch.items()}}


def _value(there: object, value: object, name: str) -> object:
    if isinstance(value, Mapping):
        return merged(there if isinstance(there, Mapping) else {}, value)
    if (key := MERGE_KEYS.get(name)) and isinstance(value, list) and all(_has(item, key) for item in value):
        return _items(there if isinstance(there, list) else [], value, key)
    return value


def _has(item: object, key: str) -> bool:
    """What is no pod's list, and only called like one, has other items."""
    return isinstance(item, Mapping) and isinstance(item.get(key), str | int)


def _items(there: Sequence[Mapping[str, Any]], patch: Sequence[Mapping[str, Any]], key: str) -> list[Any]:
    items = {item[key]: item for item in there if _has(item, key)}
    for item in patch:
        items[item[key]] = merged(items.get(item[key], {}), item)
    return [*items.values()]


def without_containers(template: Mapping[str, Any]) -> dict[str, Any]:
    """Of a template of the engines' pods what is for another pod like theirs."""
    left_out = ("containers", "initContainers", "serviceAccountName", "automountServiceAccountToken")
    pod = {name: value for name, value in template.get("spec", {}).items() if name not in left_out}
    return {**template, "spec": pod}
