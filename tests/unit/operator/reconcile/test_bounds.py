"""What is kept of LimitRanges, quotas and storage classes, and when it counts as something else."""

from typing import TYPE_CHECKING, Any

from kvtier_operator.reconcile.bounds import Bounds, BoundSink

if TYPE_CHECKING:
    from kvtier_operator.reconcile.reflector import Sink


def _quota(name: str = "team", namespace: str = "a", *, pods: str = "4", used: str = "0") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"hard": {"pods": pods}},
        "status": {"hard": {"pods": pods}, "used": {"pods": used}},
    }


def _class(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


class _Kept:
    """Bounds, their sinks for all namespaces, and the namespaces told of so far."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.bounds = Bounds(self.told.append)
        self.limit_ranges, self.quotas = (sink for _, sink in self.bounds.in_namespaces(None))
        self.classes: Sink = BoundSink(self.bounds.storage_classes, None)

    def names(self, namespace: str = "a") -> list[str]:
        return [each.name for each in self.bounds.of(namespace).quotas or ()]


def test_a_quota_belongs_to_its_namespace() -> None:
    kept = _Kept()
    kept.quotas.seen(_quota())
    kept.quotas.seen(_quota("also"))
    assert kept.names() == ["also", "team"]
    assert kept.names("b") == []
    assert kept.told == ["a", "a"]
    assert (kept.bounds.version("a"), kept.bounds.version("b")) == (2, 0)


def test_pods_that_come_and_go_change_nothing() -> None:
    kept = _Kept()
    kept.quotas.seen(_quota())
    kept.quotas.seen(_quota(used="3"))
    assert kept.told == ["a"]
    kept.quotas.seen(_quota(pods="5", used="3"))
    assert kept.told == ["a", "a"]
    assert [each.used for each in kept.bounds.of("a").quotas or ()] == [{}]


def test_what_is_gone() -> None:
    kept = _Kept()
    kept.quotas.seen(_quota())
    kept.quotas.seen(_quota("also"))
    kept.quotas.gone(_quota("also"))
    kept.quotas.gone(_quota("never"))
    assert kept.names() == ["team"]
    kept.quotas.only(set(), 9)
    assert kept.names() == []


def test_a_list_of_one_namespace_says_nothing_of_others() -> None:
    kept = _Kept()
    kept.quotas.seen(_quota())
    kept.quotas.seen(_quota(namespace="b"))
    [_, (_, of_b)] = kept.bounds.in_namespaces("b")
    of_b.only(set(), 9)
    assert (kept.names("a"), kept.names("b")) == (["team"], [])


def test_storage_classes_are_unknown_until_they_were_listed() -> None:
    kept = _Kept()
    kept.classes.seen(_class("fast"))
    assert kept.bounds.of("a").storage_classes is None
    before = kept.bounds.version("a")
    kept.classes.only({("", "fast")}, 9)
    assert [each.name for each in kept.bounds.of("a").storage_classes or ()] == ["fast"]
    assert kept.bounds.version("a") > before
    assert set(kept.told) == {""}


def test_what_cannot_be_read_bounds_nothing() -> None:
    kept = _Kept()
    kept.quotas.seen(_quota())
    kept.quotas.seen(_quota(pods="many"))
    assert kept.names() == []
    kept.limit_ranges.seen({"metadata": {"name": "x", "namespace": "a"}, "spec": {"limits": None}})
    assert kept.bounds.of("a").limit_ranges == ()
