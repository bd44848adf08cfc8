import pytest
from tests.cases.namespaces import limit_range
from tests.unit.operator.planning.cluster.namespace.refused import plan, said

from kvtier_operator.planning.cluster.namespace.limit_range import LimitRange, admitted
from kvtier_operator.planning.cluster.namespace.namespace import Namespace, refusals
from kvtier_operator.planning.verdict import Outcome

_HALF = {"cpu": "500m"}
_CPU_MAX = limit_range(max=_HALF, default=_HALF, defaultRequest=_HALF)  # as the API server completes it
_CLAIM = {"disk": {"capacity": "1Ti", "volume": {"ephemeral": {"storageClassName": "fast"}}}}


def _namespace(*ranges: LimitRange) -> Namespace:
    return Namespace(limit_ranges=ranges)


def test_a_maximum_that_the_picker_is_above() -> None:
    assert said(_namespace(_CPU_MAX)) == []
    [refusal] = said(_namespace(_CPU_MAX), router={"resources": {"requests": {"cpu": "1"}}})
    assert (refusal.reason, refusal.field) == ("LimitRangeRefuses", "spec.router.resources")
    assert refusal.message == (
        "LimitRange team: container picker of case-picker requests 1 cpu, at most 500m allowed: set "
        "spec.router.resources within that, or ask the namespace's owner for other bounds"
    )


def test_what_several_containers_share_is_said_once() -> None:
    [refusal] = said(_namespace(_CPU_MAX), engine={"resources": {"limits": {"cpu": "2"}}})[:1]
    assert "container doctor of case-engine, container engine of case-engine has a limit of 2 cpu" in (
        refusal.message
    )
    assert refusal.field == "spec.engine.resources"


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (limit_range(max={"nvidia.com/gpu": "1"}), "case-engine has a limit of 2 nvidia.com/gpu, at most 1"),
        (limit_range(min={"memory": "2Gi"}), "case-picker requests 896 MiB memory, at least 2 GiB wanted"),
        (limit_range(min={"cpu": "10m"}), "container doctor of case-engine"),
        (limit_range(max={"cpu": "9"}), "has no limit of cpu, at most 9 allowed"),
        (limit_range(maxLimitRequestRatio={"memory": "1"}), "1.75 GiB memory over a request of 896 MiB"),
        (limit_range(maxLimitRequestRatio={"cpu": "2"}), "has no limit of cpu"),
        (limit_range(maxLimitRequestRatio={"example.com/x": "2"}), "has no request of example.com/x"),
        (limit_range("Pod", max={"memory": "1Gi"}), "a pod of case-picker has a limit of 1.75 GiB memory"),
        (limit_range("Pod", min={"cpu": "2"}), "a pod of case-picker requests 500m cpu, at least 2 wanted"),
        (limit_range(defaultRequest={"example.com/x": "1"}), "1 example.com/x, which must be its limit"),
        (limit_range(default={"cpu": "250m"}), "gets a limit of 250m cpu, below its request of 500m"),
    ],
)
def test_what_is_refused(one: LimitRange, words: str) -> None:
    assert words in " ".join(each.message for each in said(_namespace(one)))


@pytest.mark.parametrize(
    "one",
    [
        limit_range(max={"memory": "2Ti"}, min={"memory": "1Mi"}),
        limit_range("Pod", max={"memory": "2Ti"}),
        limit_range("PersistentVolumeClaim", max={"storage": "1Gi"}),
        limit_range(maxLimitRequestRatio={"memory": "2"}),
        limit_range(default={"cpu": "2"}, max={"cpu": "2"}, defaultRequest={"cpu": "1"}),
    ],
)
def test_what_is_not(one: LimitRange) -> None:
    assert said(_namespace(one)) == []


def test_a_volume_that_is_made_with_the_pod() -> None:
    one = limit_range("PersistentVolumeClaim", max={"storage": "1Ti"})
    [refusal] = said(_namespace(one), tiers=_CLAIM)
    assert "volume kv-disk-0 of case-engine requests 1.10 TiB storage, at most 1 TiB allowed" in (
        refusal.message
    )
    assert refusal.field == "spec.tiers.disk.capacity"
    assert said(_namespace(limit_range("PersistentVolumeClaim", min={"storage": "2Ti"})), tiers=_CLAIM)


def test_a_volume_for_the_weights() -> None:
    one = limit_range("PersistentVolumeClaim", max={"storage": "50Gi"})
    [refusal] = said(_namespace(one), model_volume={"ephemeral": {}})
    assert refusal.field == "spec.model.volume"
    assert "volume weights of case-engine requests" in refusal.message
    assert "keep the weights on another spec.model.volume than ephemeral, or ask" in refusal.message
    [refusal] = said(_namespace(limit_range("Pod", max={"ephemeral-storage": "50Gi"})))[:1]
    assert refusal.field == "spec.model.volume"


def test_limits_that_were_not_looked_at_are_no_pass() -> None:
    names = [each.name for each in refusals(plan(), Namespace(limit_ranges=None, quotas=None))]
    assert names == ["storage"]


def test_a_limit_that_nobody_asked_for_is_pointed_out() -> None:
    found = said(_namespace(limit_range(default={"cpu": "4"})), Outcome.WARN)
    assert [(each.reason, each.field) for each in found] == [
        ("LimitRangeSetsLimit", "spec.engine.resources"),
        ("LimitRangeSetsLimit", "spec.router.resources"),
    ]
    assert "gives container engine of case-engine a limit of 4 cpu" in found[0].message


def test_defaults_are_for_what_is_not_set() -> None:
    one = limit_range(default={"cpu": "2", "memory": "1Mi"}, defaultRequest={"cpu": "1"})
    pod = {"containers": [{"name": "x", "resources": {"limits": {"memory": "1Gi"}}}]}
    [container] = admitted(pod, [one])["containers"]
    assert container["resources"] == {
        "limits": {"cpu": "2", "memory": "1Gi"},
        "requests": {"cpu": "1", "memory": "1Gi"},
    }


def test_no_bounds() -> None:
    assert {each.outcome for each in refusals(plan(), Namespace())} == {Outcome.PASS}
