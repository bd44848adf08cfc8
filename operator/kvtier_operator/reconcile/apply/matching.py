"""Whether a live object is as desired although the server adds defaults and rewrites quantities."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from kvtier_operator.api.formats.quantity import parse_quantity

_NOTHING: Final[tuple[object, ...]] = (None, "", [], {})
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "env": ("name",),
    "imagePullSecrets": ("name",),
    "resourceClaims": ("name",),
    "claims": ("name",),
    "ports": ("containerPort", "port"),
    "topologySpreadConstraints": ("topologyKey",),
    "hostAliases": ("ip",),
    "schedulingGates": ("name",),
    "ownerReferences": ("uid",),
    "groups": ("name",),
}
"""Lists of objects that the server merges, and by which of their fields (x-kubernetes-list-map-keys)."""
ATOMIC_MAPS: Final = frozenset({"selector", "labelSelector", "matchLabels", "nodeSelector"})
"""Maps that the server does not merge (x-kubernetes-map-type: atomic): one more key changes their meaning."""
_WHEN_ABSENT: Final[Mapping[str, object]] = {
    "paused": False,
    "minReadySeconds": 0,
    "publishNotReadyAddresses": False,
    "readOnly": False,
    "initialDelaySeconds": 0,
}
"""Fields that the server leaves out where they are zero.

Source: k8s.io/api, DeploymentSpec, ServiceSpec, VolumeMount and Probe.
"""


def matches(live: object, desired: object, field: str = "") -> bool:
    """Whether `live` has everything that `desired` has.

    What `live` has beyond it belongs to others, except in maps and lists that the server replaces as a whole.
    An absent value equals an empty one, and two spellings of one quantity are equal.

    Args:
        live: The live value.
        desired: The desired value.
        field: Name of the field that has these values.
    """
    if isinstance(desired, Mapping):
        there = live if isinstance(live, Mapping) else {}
        if field in ATOMIC_MAPS and there.keys() - desired.keys():
            return False
        return all(
            matches(there.get(key, _WHEN_ABSENT.get(key)), value, key) for key, value in desired.items()
        )
    if isinstance(desired, Sequence) and not isinstance(desired, str):
        return _all_match(live if isinstance(live, list) else [], desired, _KEYS.get(field, ()))
    if (live == desired and type(live) is type(desired)) or (live in _NOTHING and desired in _NOTHING):
        return True
    if not isinstance(live, str | int) or not isinstance(desired, str | int):
        return False
    return _number(live) is not None and _number(live) == _number(desired)


def _all_match(live: Sequence[Any], desired: Sequence[Any], keys: Sequence[str]) -> bool:
    """Item by item, or by their keys where others may add items and have done so."""
    if len(live) == len(desired):
        return all(matches(there, item) for there, item in zip(live, desired, strict=True))
    key = next((key for key in keys if desired and all(_has(item, key) for item in desired)), None)
    if key is None or len(live) < len(desired):
        return False
    by_key = {item[key]: item for item in live if _has(item, key)}
    return all(matches(by_key.get(item[key]), item) for item in desired)


def _has(item: object, key: str) -> bool:
    return isinstance(item, Mapping) and key in item


@lru_cache(maxsize=1024, typed=True)
def _number(value: str | int) -> Decimal | None:
    if isinstance(value, bool):
        return None
    try:
        return parse_quantity(value)
    except ValueError:
        return None
