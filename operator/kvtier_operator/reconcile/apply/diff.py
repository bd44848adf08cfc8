"""What has to be done to bring the live objects to the desired ones."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvtier_operator.reconcile.api_server.kinds import Ref
from kvtier_operator.reconcile.apply.matching import matches
from kvtier_operator.reconcile.cache.live_object import LiveObject
from kvtier_operator.reconcile.facts.desired import DesiredObject


@dataclass(frozen=True, slots=True)
class Diff:
    """The difference between the desired objects of a resource and the live ones.

    Attributes:
        missing: Desired objects that no watch shows; other people's objects may have their names.
        out_of_sync: Desired objects whose live objects differ from them.
        owned_by_others: Desired objects whose names belong to objects of other owners.
        unserved: Desired objects of kinds that the cluster does not serve.
        to_prune: Live objects of the resource that are no longer desired.
        found_in_sync: Live objects that were compared and are in sync, with the digest of the desired object.
    """

    missing: tuple[DesiredObject, ...] = ()
    out_of_sync: tuple[DesiredObject, ...] = ()
    owned_by_others: tuple[DesiredObject, ...] = ()
    unserved: tuple[DesiredObject, ...] = ()
    to_prune: tuple[LiveObject, ...] = ()
    found_in_sync: tuple[tuple[LiveObject, str], ...] = ()


def is_in_sync(
    desired: Sequence[DesiredObject], owned: Iterable[LiveObject], served: Callable[[str], bool]
) -> bool:
    """Whether all objects are known to be in sync: needs no bodies, and is quick.

    Args:
        desired: The desired objects, of kinds that the cluster serves and others.
        owned: The live objects of the resource.
        served: Whether the cluster serves a kind.
    """
    synced = {live_object.ref: live_object.synced_digest for live_object in owned}
    can_exist = [each for each in desired if served(each.ref.kind)]
    return len(synced) == len(can_exist) and all(synced.get(each.ref) == each.digest for each in can_exist)


def diff(
    desired: Sequence[DesiredObject],
    owned: Iterable[LiveObject],
    live: Callable[[Ref], LiveObject | None],
    served: Callable[[str], bool],
    owner_uid: str,
) -> Diff:
    """Compares desired and live objects.

    Args:
        desired: The desired objects, with bodies.
        owned: The live objects of the resource.
        live: The live object of a name, whoever owns it; only objects with kvtier's label are known.
        served: Whether the cluster serves a kind.
        owner_uid: The resource's uid.
    """
    missing, out_of_sync, owned_by_others, unserved, found_in_sync = [], [], [], [], []
    for each in desired:
        live_object = live(each.ref)
        if not served(each.ref.kind):
            unserved.append(each)
        elif live_object is None:
            missing.append(each)
        elif live_object.owner_uid != owner_uid and not live_object.orphaned:
            owned_by_others.append(each)
        elif live_object.deleting or live_object.synced_digest == each.digest:
            pass
        elif _is_as_desired(live_object, each):
            found_in_sync.append((live_object, each.digest))
        else:
            out_of_sync.append(each.with_uid(live_object.uid))
    names = {each.ref for each in desired}
    to_prune = [
        live_object for live_object in owned if live_object.ref not in names and not live_object.deleting
    ]
    return Diff(
        tuple(missing),
        tuple(out_of_sync),
        tuple(owned_by_others),
        tuple(unserved),
        tuple(to_prune),
        tuple(found_in_sync),
    )


def _is_as_desired(live_object: LiveObject, desired: DesiredObject) -> bool:
    if live_object.applied_digest != desired.digest or live_object.manifest is None or desired.body is None:
        return False
    return matches(live_object.manifest.read(), _without_type(desired.body))


def _without_type(body: Mapping[str, Any]) -> dict[str, Any]:
    """Without apiVersion and kind, which are the same for every object of that path."""
    return {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}
