"""What is kept of LimitRanges, quotas and storage classes, and when it counts as something else."""

from typing import TYPE_CHECKING, Any

from tests.shared.steps import steps

from kvtier_operator.reconcile.cache.surroundings import (
    MOST_OF_A_NAMESPACE,
    NamespaceLimitCache,
    NamespaceLimitSink,
)

if TYPE_CHECKING:
    from kvtier_common.kubernetes.reflector import Sink


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
        self.namespace_limits = NamespaceLimitCache(self.told.append)
        self.limit_ranges, self.quotas = (sink for _, sink in self.namespace_limits.in_namespaces(None))
        self.classes: Sink = NamespaceLimitSink(self.namespace_limits.storage_classes, None)

    def names(self, namespace: str = "a") -> list[str]:
        return [each.name for each in self.namespace_limits.of(namespace).quotas or ()]


def test_of_many_in_one_namespace_the_first_few_bound_its_plans() -> None:
    kept = _Kept()
    for number in range(MOST_OF_A_NAMESPACE + 5):
        kept.quotas.upsert(_quota(f"{number:03}"))
    assert kept.names() == [f"{number:03}" for number in range(MOST_OF_A_NAMESPACE)]
    kept.quotas.delete(_quota("000"))
    assert kept.names()[-1] == f"{MOST_OF_A_NAMESPACE:03}"


def test_one_more_costs_no_more_the_more_there_are() -> None:
    def cost(count: int) -> int:
        kept = _Kept()
        for number in range(count):
            kept.quotas.upsert(_quota(f"{number:03}"))
        return steps(lambda: kept.quotas.upsert(_quota("one more")))

    assert cost(1000) == cost(10)


def test_a_quota_that_bounds_more_than_a_plan_can_look_at_bounds_nothing() -> None:
    kept, quota = _Kept(), _quota()
    quota["spec"]["hard"] = {f"count/things{number}.example.com": "1" for number in range(600)}
    kept.quotas.upsert(quota)
    assert kept.names() == []


def test_a_quota_belongs_to_its_namespace() -> None:
    kept = _Kept()
    kept.quotas.upsert(_quota())
    kept.quotas.upsert(_quota("also"))
    assert kept.names() == ["also", "team"]
    assert kept.names("b") == []
    assert kept.told == ["a", "a"]
    assert (kept.namespace_limits.version("a"), kept.namespace_limits.version("b")) == (2, 0)


def test_pods_that_come_and_go_change_nothing() -> None:
    kept = _Kept()
    kept.quotas.upsert(_quota())
    kept.quotas.upsert(_quota(used="3"))
    assert kept.told == ["a"]
    kept.quotas.upsert(_quota(pods="5", used="3"))
    assert kept.told == ["a", "a"]
    assert [each.used for each in kept.namespace_limits.of("a").quotas or ()] == [{}]


def test_what_is_gone() -> None:
    kept = _Kept()
    kept.quotas.upsert(_quota())
    kept.quotas.upsert(_quota("also"))
    kept.quotas.delete(_quota("also"))
    kept.quotas.delete(_quota("never"))
    assert kept.names() == ["team"]
    kept.quotas.replace(set(), 9)
    assert kept.names() == []


def test_a_list_of_one_namespace_says_nothing_of_others() -> None:
    kept = _Kept()
    kept.quotas.upsert(_quota())
    kept.quotas.upsert(_quota(namespace="b"))
    [_, (_, of_b)] = kept.namespace_limits.in_namespaces("b")
    of_b.replace(set(), 9)
    assert (kept.names("a"), kept.names("b")) == (["team"], [])


def test_storage_classes_are_unknown_until_they_were_listed() -> None:
    kept = _Kept()
    kept.classes.upsert(_class("fast"))
    assert kept.namespace_limits.of("a").storage_classes is None
    before = kept.namespace_limits.version("a")
    kept.classes.replace({("", "fast")}, 9)
    assert [each.name for each in kept.namespace_limits.of("a").storage_classes or ()] == ["fast"]
    assert kept.namespace_limits.version("a") > before
    assert set(kept.told) == {""}


def test_what_cannot_be_read_bounds_nothing() -> None:
    kept = _Kept()
    kept.quotas.upsert(_quota())
    kept.quotas.upsert(_quota(pods="many"))
    assert kept.names() == []
    kept.limit_ranges.upsert({"metadata": {"name": "x", "namespace": "a"}, "spec": {"limits": None}})
    assert kept.namespace_limits.of("a").limit_ranges == ()


def test_a_namespace_that_has_nothing_any_more_is_forgotten_and_others_count_on() -> None:
    kept = _Kept()
    kept.classes.upsert(_class("fast"))
    before = kept.namespace_limits.version("a")
    kept.quotas.upsert(_quota())
    during = kept.namespace_limits.version("a")
    kept.quotas.delete(_quota())
    assert (kept.namespace_limits.version("a"), kept.namespace_limits._versions) == (before, {"": before})
    kept.quotas.upsert(_quota(pods="5"))
    assert len({before, during, kept.namespace_limits.version("a")}) == 3
