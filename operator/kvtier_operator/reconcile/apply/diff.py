"""What has to be done to bring the live objects to the desired ones, although the server adds defaults."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from kvtier_operator.api.quantity import parse_quantity
from kvtier_operator.reconcile.api_server import Ref
from kvtier_operator.reconcile.cache.live_object import LiveObject
from kvtier_operator.reconcile.facts.cached_plan import DesiredObject

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


def removal_of_extra_keys(
    live: Mapping[str, Any], desired: Mapping[str, Any], field: str = ""
) -> dict[str, Any]:
    """A merge patch that removes the extra keys; empty where there are none.

    An apply keeps keys that another manager set, such as one more label in an InferencePool's selector.
    """
    patch: dict[str, Any] = dict.fromkeys(live.keys() - desired.keys()) if field in ATOMIC_MAPS else {}
    for key, value in desired.items():
        there = live.get(key)
        if not isinstance(value, Mapping) or not isinstance(there, Mapping):
            continue
        if inner := removal_of_extra_keys(there, value, key):
            patch[key] = inner
    return patch


@dataclass(frozen=True, slots=True)
class Diff:
    """The difference between the desired objects of a resource and the live ones."""

    # desired objects that no watch shows; other people's objects may have their names
    missing: tuple[DesiredObject, ...] = ()
    out_of_sync: tuple[DesiredObject, ...] = ()  # desired objects whose live objects differ from them
    # desired objects whose names belong to objects of other owners
    owned_by_others: tuple[DesiredObject, ...] = ()
    to_prune: tuple[LiveObject, ...] = ()  # live objects of the resource that are no longer desired
    # live objects that were compared and are in sync, with the digest of the desired object
    found_in_sync: tuple[tuple[LiveObject, str], ...] = ()


def is_in_sync(
    desired: Sequence[DesiredObject], owned: Iterable[LiveObject], served: Callable[[str], bool]
) -> bool:
    """Whether all objects are known to be in sync: needs no bodies, and is quick."""
    synced = {live_object.ref: live_object.synced_digest for live_object in owned}
    can_exist = [child for child in desired if served(child.ref.kind)]
    return len(synced) == len(can_exist) and all(synced.get(child.ref) == child.digest for child in can_exist)


def diff(
    desired: Sequence[DesiredObject],
    owned: Iterable[LiveObject],
    live: Callable[[Ref], LiveObject | None],
    served: Callable[[str], bool],
    owner_uid: str,
) -> Diff:
    """Compares live objects with those desired ones that the cluster serves."""
    missing, out_of_sync, owned_by_others, found_in_sync = [], [], [], []
    for child in desired:
        live_object = live(child.ref)
        if not served(child.ref.kind):
            continue
        if live_object is None:
            missing.append(child)
        elif live_object.owner_uid != owner_uid and not live_object.orphaned:
            owned_by_others.append(child)
        elif live_object.deleting or live_object.synced_digest == child.digest:
            pass
        elif _is_as_desired(live_object, child):
            found_in_sync.append((live_object, child.digest))
        else:
            out_of_sync.append(child.with_uid(live_object.uid))
    names = {child.ref for child in desired}
    to_prune = tuple(live for live in owned if live.ref not in names and not live.deleting)
    return Diff(tuple(missing), tuple(out_of_sync), tuple(owned_by_others), to_prune, tuple(found_in_sync))


def _is_as_desired(live_object: LiveObject, desired: DesiredObject) -> bool:
    if live_object.applied_digest != desired.digest or live_object.manifest is None or desired.body is None:
        return False
    return matches(live_object.manifest.read(), _without_type(desired.body))


def _without_type(body: Mapping[str, Any]) -> dict[str, Any]:
    """Without apiVersion and kind, which are the same for every object of that path."""
    return {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}
