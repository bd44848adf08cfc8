"""What has to be done so that the live objects are the wanted ones. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kvtier_operator.reconcile.api_server.kinds import Ref
from kvtier_operator.reconcile.apply.desired import Wanted
from kvtier_operator.reconcile.apply.matching import says
from kvtier_operator.reconcile.cache.live_object import Child


@dataclass(frozen=True, slots=True)
class Diff:
    """The work to do.

    Attributes:
        missing: Wanted objects that no watch shows: someone else's may have their names.
        differing: Own objects that are not as wanted.
        foreign: Wanted objects whose names are taken by objects that are not the resource's.
        unserved: Wanted objects whose kinds the cluster does not know.
        surplus: Own objects that are no longer wanted.
    """

    missing: tuple[Wanted, ...] = ()
    differing: tuple[Wanted, ...] = ()
    foreign: tuple[Wanted, ...] = ()
    unserved: tuple[Wanted, ...] = ()
    surplus: tuple[Child, ...] = ()


def is_settled(wanted: Sequence[Wanted], owned: Iterable[Child], served: Callable[[str], bool]) -> bool:
    """Whether nothing can be left to do: needs no bodies, and is quick.

    Args:
        wanted: The objects to have, of kinds that the cluster serves and others.
        owned: The resource's own objects.
        served: Whether the cluster knows a kind.
    """
    matched = {child.ref: child.matched for child in owned}
    had = [each for each in wanted if served(each.ref.kind)]
    return len(matched) == len(had) and all(matched.get(each.ref) == each.digest for each in had)


def diff(
    wanted: Sequence[Wanted],
    owned: Iterable[Child],
    live: Callable[[Ref], Child | None],
    served: Callable[[str], bool],
    owner_uid: str,
) -> Diff:
    """Compares.

    An object that is as wanted is marked so, so that its content need not be kept.

    Args:
        wanted: The objects to have, with bodies.
        owned: The resource's own objects.
        live: Any object that carries kvtier's label.
        served: Whether the cluster knows a kind.
        owner_uid: The resource's uid.
    """
    missing, differing, foreign, unserved = [], [], [], []
    for each in wanted:
        child = live(each.ref)
        if not served(each.ref.kind):
            unserved.append(each)
        elif child is None:
            missing.append(each)
        elif child.owner_uid != owner_uid and not child.lost:
            foreign.append(each)
        elif not child.deleting and not _as_wanted(child, each):
            differing.append(each.over(child.uid))
    names = {each.ref for each in wanted}
    surplus = [child for child in owned if child.ref not in names and not child.deleting]
    return Diff(tuple(missing), tuple(differing), tuple(foreign), tuple(unserved), tuple(surplus))


def _as_wanted(child: Child, wanted: Wanted) -> bool:
    if child.matched == wanted.digest:
        return True
    if child.applied != wanted.digest or child.content is None or wanted.body is None:
        return False
    if not says(child.content.read(), _content(wanted)):
        return False
    child.settle(wanted.digest)
    return True


def _content(wanted: Wanted) -> dict[str, object]:
    """Without what every object of that path has anyway."""
    return {key: value for key, value in (wanted.body or {}).items() if key not in ("apiVersion", "kind")}
