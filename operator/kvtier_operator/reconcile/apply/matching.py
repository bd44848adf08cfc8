"""Whether a live object says what is wanted: the server adds defaults and writes quantities its own way."""

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
    "ownerReferences": ("uid",),
    "groups": ("name",),
}
"""Lists of objects that the server merges, and by which of their fields (x-kubernetes-list-map-keys)."""
WHOLE: Final = frozenset({"selector", "labelSelector", "matchLabels", "nodeSelector"})
"""Maps that the server does not merge (x-kubernetes-map-type: atomic): a key more says something else."""
_WHEN_ABSENT: Final[Mapping[str, object]] = {
    "paused": False,
    "minReadySeconds": 0,
    "publishNotReadyAddresses": False,
}
"""Fields that the server leaves out where they are zero (k8s.io/api, DeploymentSpec, ServiceSpec)."""


def says(live: object, wanted: object, field: str = "") -> bool:
    """Whether everything in `wanted` stands in `live`.

    What `live` has beyond it is someone else's, but for maps and lists that the server takes as a whole.
    Nothing and an empty value are the same, and so are two ways to write one quantity.

    Args:
        live: What there is.
        wanted: What there should be.
        field: Name of the field that this is the value of.
    """
    if isinstance(wanted, Mapping):
        there = live if isinstance(live, Mapping) else {}
        if field in WHOLE and there.keys() - wanted.keys():
            return False
        return all(says(there.get(key, _WHEN_ABSENT.get(key)), value, key) for key, value in wanted.items())
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        return _says_all(live if isinstance(live, list) else [], wanted, _KEYS.get(field, ()))
    if (live == wanted and type(live) is type(wanted)) or (live in _NOTHING and wanted in _NOTHING):
        return True
    if not isinstance(live, str | int) or not isinstance(wanted, str | int):
        return False
    return _number(live) is not None and _number(live) == _number(wanted)


def _says_all(live: Sequence[Any], wanted: Sequence[Any], keys: Sequence[str]) -> bool:
    """Item by item, or, where there are more than wanted and others may add some, by their keys."""
    if len(live) == len(wanted):
        return all(says(there, item) for there, item in zip(live, wanted, strict=True))
    key = next((key for key in keys if wanted and all(_has(item, key) for item in wanted)), None)
    if key is None or len(live) < len(wanted):
        return False
    by_key = {item[key]: item for item in live if _has(item, key)}
    return all(says(by_key.get(item[key]), item) for item in wanted)


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
