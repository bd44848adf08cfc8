"""A pod that was given a tier, as its owner wrote it, as far as its resources tell."""

import copy
from collections.abc import Mapping
from typing import Any, Final

from kvtier_connector.payload import ATTACH_VARIABLE, INIT_NAME, VOLUME_NAME
from kvtier_operator.planning.attach.delivery import CACHE_NAME
from kvtier_operator.planning.attach.resources import without_added
from kvtier_operator.planning.backends import parts
from kvtier_operator.planning.base.names import ADDED, ATTACHED

_VOLUMES: Final = {VOLUME_NAME, CACHE_NAME, f"{parts.VOLUME_NAME}-0"}


def as_owned(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """The pod before it was given a tier; one that was given none as it is.

    The init container asks for what the engine's asked for then, or an annotation says what it asks for more;
    huge pages and a disk it had none.

    Args:
        pod: Labels and annotations in `metadata`, the pod's spec in `spec`.
    """
    if ATTACHED not in (pod["metadata"].get("annotations") or {}):
        return pod
    before: dict[str, Any] = copy.deepcopy({**pod})
    del before["metadata"]["annotations"][ATTACHED]
    added = str(before["metadata"]["annotations"].pop(ADDED, ""))
    spec = before["spec"]
    payload: Mapping[str, Any] = next(
        (one for one in spec.get("initContainers") or () if one["name"] == INIT_NAME), {}
    )
    _drop(spec, "initContainers", {INIT_NAME})
    _drop(spec, "volumes", _VOLUMES)
    for engine in spec["containers"]:
        if not any(variable["name"] == ATTACH_VARIABLE for variable in engine.get("env") or ()):
            continue
        _drop(engine, "env", {ATTACH_VARIABLE})
        _drop(engine, "volumeMounts", _VOLUMES)
        copied = payload.get("resources") or {}
        for kind, amounts in (engine.get("resources") or {}).items():
            if isinstance(amounts, dict) and (added or kind in copied):
                own = {name: amount for name, amount in amounts.items() if not name.startswith("hugepages-")}
                engine["resources"][kind] = without_added(own | copied.get(kind, {}), added)
    return before


def _drop(owner: dict[str, Any], field: str, names: set[str]) -> None:
    if owner.get(field):
        owner[field] = [entry for entry in owner[field] if entry["name"] not in names]
