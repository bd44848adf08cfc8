from dataclasses import replace
from typing import Any

import pytest
from tests.cases.namespaces import limit_range, quota
from tests.unit.operator.planning.cluster.namespace.refused import plan, said

from kvtier_operator.planning.cluster.namespace.demand import Demand
from kvtier_operator.planning.cluster.namespace.namespace import Namespace, demand, refusals
from kvtier_operator.planning.cluster.namespace.quota import Quota
from kvtier_operator.planning.cluster.namespace.storage import StorageClass
from kvtier_operator.planning.cluster.namespace.workload import workload
from kvtier_operator.planning.objects.engine.deployment import engine_deployment
from kvtier_operator.planning.objects.picker import picker_deployment
from kvtier_operator.planning.verdict import CheckResult, Outcome

_CPU = {"resources": {"requests": {"cpu": "4"}, "limits": {"cpu": "8"}}}
_CLAIM = {"disk": {"capacity": "1Ti", "volume": {"ephemeral": {}}}}
_PAGES = {"cpu": {"capacity": "100Gi", "hugepages": {"policy": "Require"}}}
_TIB = 1 << 40


def _namespace(*found: Quota) -> Namespace:
    return Namespace(quotas=found)


def test_more_than_it_allows() -> None:
    [refusal] = said(_namespace(quota({"requests.cpu": "8"})), engine=_CPU)
    assert (refusal.reason, refusal.field) == ("QuotaExceeded", "spec.engine.resources")
    assert refusal.message == (
        "ResourceQuota team allows 8 of requests.cpu; 8500m needed (2 engine pods of 4, 1 picker pod of "
        "500m): lower spec.engine.resources, or ask the namespace's owner for 500m more"
    )


def test_more_than_others_leave() -> None:
    [refusal] = said(_namespace(quota({"pods": "4"}, {"pods": "2"})))
    assert "allows 4 of pods, 2 of it used by others; 3 needed" in refusal.message
    assert refusal.field == "spec.replicas"
    assert said(_namespace(quota({"pods": "6"}, {"pods": "2"}))) == []


def test_a_rollout_that_would_wait_is_no_refusal() -> None:
    namespace = _namespace(quota({"requests.cpu": "4500m"}))
    assert said(namespace, replicas=1, engine=_CPU) == []
    [remark] = said(namespace, Outcome.WARN, replicas=1, engine=_CPU)
    assert (remark.reason, remark.field) == ("QuotaHoldsRollout", "metadata.namespace")
    assert remark.message == (
        "ResourceQuota team allows 4500m of requests.cpu, which is enough; 5 needed with 2 picker pods of "
        "500m while the picker is replaced: a rollout would wait; ask the namespace's owner for 500m more; "
        "by itself kvtier goes on with one as soon as there is room"
    )
    [refusal] = said(_namespace(quota({"requests.cpu": "4499m"})), replicas=1, engine=_CPU)
    assert "4500m needed (1 engine pod of 4, 1 picker pod of 500m)" in refusal.message
    assert said(_namespace(quota({"requests.cpu": "5"})), Outcome.WARN, replicas=1, engine=_CPU) == []


@pytest.mark.parametrize(
    ("hard", "spec", "field"),
    [
        ({"pods": "2"}, {"replicas": 2}, "spec.replicas"),
        ({"pods": "1"}, {"replicas": 1}, "metadata.namespace"),
        ({"pods": "1"}, {"replicas": 2}, "metadata.namespace"),  # one engine and the picker are two
        ({"pods": "2"}, {"replicas": 1, "router": {"replicas": 2}}, "spec.router.replicas"),
        ({"requests.nvidia.com/gpu": "2"}, {"replicas": 2}, "spec.replicas"),
        ({"requests.nvidia.com/gpu": "1"}, {"replicas": 2}, "spec.engine.tensorParallelSize"),
        ({"requests.nvidia.com/gpu": "1"}, {"replicas": 1}, "spec.engine.tensorParallelSize"),
        (
            {"requests.nvidia.com/gpu": "0"},
            {"replicas": 1, "engine": {"tensorParallelSize": 1}},
            "metadata.namespace",
        ),
    ],
)
def test_no_field_is_named_that_makes_no_room(hard: dict[str, str], spec: dict[str, Any], field: str) -> None:
    [refusal] = said(_namespace(quota(hard)), **spec)
    assert refusal.field == field
    assert ("lower" in refusal.message) == (field != "metadata.namespace")


_EPHEMERAL = {"ephemeral": {"storageClassName": "gold"}}
_GOLD = "gold.storageclass.storage.k8s.io"


@pytest.mark.parametrize(
    ("hard", "spec", "words"),
    [
        ({"requests.ephemeral-storage": "50Gi"}, {}, "than emptyDir"),
        ({"requests.storage": "50Gi"}, {"model_volume": _EPHEMERAL}, "than ephemeral"),
        ({f"{_GOLD}/requests.storage": "50Gi"}, {"model_volume": _EPHEMERAL}, "than ephemeral"),
    ],
)
def test_volumes_of_the_weights(hard: dict[str, str], spec: dict[str, Any], words: str) -> None:
    [refusal] = said(_namespace(quota(hard)), replicas=1, **spec)
    assert refusal.field == "spec.model.volume"
    assert f"keep the weights on another spec.model.volume {words}, or ask" in refusal.message
    assert "disk" not in refusal.message


def test_an_image_with_the_model_is_on_the_nodes_disk() -> None:
    source = {"source": "oci://registry.example/qwen3:1"}
    [refusal] = said(_namespace(quota({"requests.ephemeral-storage": "50Gi"})), model_source=source)
    assert refusal.field == "spec.model.source"
    assert "take the weights from a claim: pvc://CLAIM in spec.model.source, or ask" in refusal.message


def test_volumes_made_for_the_weights_are_counted() -> None:
    for name in ("persistentvolumeclaims", f"{_GOLD}/persistentvolumeclaims"):
        [refusal] = said(_namespace(quota({name: "1"})), replicas=2, model_volume=_EPHEMERAL)
        assert refusal.field == "spec.replicas"


@pytest.mark.parametrize(
    ("own", "field"), [("500Gi", "spec.engine.resources"), ("1Gi", "spec.tiers.disk.capacity")]
)
def test_what_the_resource_says_itself_of_the_nodes_disk(own: str, field: str) -> None:
    engine = {"resources": {"requests": {"ephemeral-storage": own}}}
    disk = {"disk": {"capacity": "300Gi", "volume": {"emptyDir": {}}}}
    namespace = _namespace(quota({"requests.ephemeral-storage": "50Gi"}))
    [refusal] = said(namespace, replicas=1, engine=engine, tiers=disk)
    assert refusal.field == field


def test_resources_before_it_are_counted_with_it() -> None:
    namespace = _namespace(quota({"pods": "8"}))
    other = demand(plan(), namespace)
    assert _with([other], namespace) == []
    [refusal] = _with([other, other], namespace)
    assert refusal.message.startswith(
        "ResourceQuota team allows 8 of pods; 3 needed (2 engine pods of 1, 1 picker pod of 1), "
        "9 with the 2 resources before it: lower spec.replicas"
    )
    [refusal] = _with([demand(plan(replicas=5), namespace)], namespace)
    assert "9 with the resource before it" in refusal.message


def test_a_resource_before_it_that_runs_already_is_not_counted_twice() -> None:
    one = plan()
    there = (workload(engine_deployment(one), 2), workload(picker_deployment(one), 1))
    namespace = _namespace(quota({"pods": "6"}, {"pods": "3"}))
    assert _with([demand(one, replace(namespace, present=there))], namespace) == []
    assert len(_with([demand(one, namespace)], namespace)) == 1


def _with(before: list[Demand], namespace: Namespace) -> list[CheckResult]:
    return [each for each in refusals(plan(), namespace, before) if each.outcome is Outcome.REJECT]


@pytest.mark.parametrize(
    ("hard", "field", "words"),
    [
        ({"requests.nvidia.com/gpu": "3"}, "spec.replicas", "4 needed (2 engine pods of 2)"),
        ({"limits.memory": "20Gi"}, "spec.tiers.cpu.capacity", "1 picker pod of 1.75 GiB"),
        ({"memory": "20Gi"}, "spec.tiers.cpu.capacity", "20 GiB of memory"),
        ({"hugepages-2Mi": "100Gi"}, "spec.tiers.cpu.capacity", "200 GiB needed"),
        ({"requests.hugepages-2Mi": "100Gi"}, "spec.tiers.cpu.capacity", "100 GiB more"),
        ({"requests.storage": "2Ti"}, "spec.tiers.disk.capacity", "2.20 TiB needed"),
        ({"persistentvolumeclaims": "1"}, "spec.replicas", "2 needed"),
        (
            {"fast.storageclass.storage.k8s.io/requests.storage": "2Ti"},
            "spec.tiers.disk.capacity",
            "2.20 TiB",
        ),
        (
            {"count/deployments.apps": "1"},
            "metadata.namespace",
            "2 needed: ask the namespace's owner for 1 more",
        ),
        ({"count/pods": "2"}, "spec.replicas", "3 needed (2 engine pods of 1, 1 picker pod of 1)"),
        ({"services": "1"}, "metadata.namespace", "2 needed"),
    ],
)
def test_what_is_counted(hard: dict[str, str], field: str, words: str) -> None:
    namespace = replace(_namespace(quota(hard)), storage_classes=(StorageClass("fast", default=True),))
    [refusal] = said(namespace, engine=_CPU, tiers=_CLAIM | _PAGES)
    assert refusal.field == field
    assert words in refusal.message


def test_devices_that_the_resource_names() -> None:
    engine = _CPU | {"resources": _CPU["resources"] | {"limits": {"nvidia.com/mig-3g.40gb": 2}}}
    [refusal] = said(_namespace(quota({"requests.nvidia.com/mig-3g.40gb": "3"})), engine=engine)
    assert (refusal.field, "4 needed (2 engine pods of 2)" in refusal.message) == ("spec.replicas", True)


def test_the_picker_alone() -> None:
    [refusal] = said(_namespace(quota({"requests.cpu": "400m"})), replicas=0, engine=_CPU)
    assert refusal.field == "spec.router.resources"


def test_a_disk_on_the_node() -> None:
    disk = {"disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}}
    [refusal] = said(_namespace(quota({"requests.ephemeral-storage": "2Ti"})), tiers=disk)
    assert refusal.field == "spec.tiers.disk.capacity"


def test_what_every_container_has_to_set() -> None:
    first, second = said(_namespace(quota({"limits.cpu": "99"})))
    assert (first.reason, first.field) == ("QuotaUnspecified", "spec.engine.resources.limits.cpu")
    assert "which doctor, engine of case-engine does not: set spec.engine.resources.limits.cpu, or ask" in (
        first.message
    )
    assert second.field == "spec.router.resources.limits.cpu"


def test_what_no_field_sets() -> None:
    [refusal, _] = said(_namespace(quota({"limits.cpu": "99"})), backend="LMCacheMP", engine=_CPU)
    assert "lmcache of case-engine does not: ask the namespace's owner for a LimitRange" in refusal.message


def test_what_a_template_leaves_out() -> None:
    template = {"spec": {"containers": [{"name": "more", "image": "a/b:1"}]}}
    engine = _CPU | {"podTemplate": template}
    [refusal, _] = said(_namespace(quota({"limits.cpu": "99"})), engine=engine)
    assert refusal.field == "spec.engine.podTemplate.spec.containers[more].resources.limits.cpu"
    assert "which more of case-engine does not: set spec.engine.podTemplate" in refusal.message


def test_every_field_that_has_to_be_set_is_named() -> None:
    template = {"spec": {"containers": [{"name": name, "image": "a/b:1"} for name in ("one", "two")]}}
    refusal, _ = said(_namespace(quota({"limits.cpu": "99"})), engine={"podTemplate": template})
    start = "spec.engine.podTemplate.spec.containers"
    assert refusal.field == "spec.engine.resources.limits.cpu"
    assert (
        f"does not: set spec.engine.resources.limits.cpu and {start}[one].resources.limits.cpu "
        f"and {start}[two].resources.limits.cpu, or ask" in refusal.message
    )


def test_a_default_sets_it() -> None:
    given = limit_range(default={"cpu": "2"}, defaultRequest={"cpu": "1"})
    namespace = Namespace(limit_ranges=(given,), quotas=(quota({"limits.cpu": "8"}),))
    assert said(namespace) == []
    namespace = replace(namespace, quotas=(quota({"limits.cpu": "5"}),))
    assert "2 engine pods of 2, 1 picker pod of 2" in said(namespace)[0].message


def test_pickers_that_elect_a_leader_are_all_replaced_at_once() -> None:
    namespace = _namespace(quota({"pods": "5"}))
    assert said(namespace, router={"replicas": 2}) == []
    [remark] = said(namespace, Outcome.WARN, router={"replicas": 2})
    assert "6 needed with 4 picker pods of 1 while the picker is replaced" in remark.message


def test_what_runs_already_is_not_counted_twice() -> None:
    one = plan(engine=_CPU)
    there = (workload(engine_deployment(one), 2), workload(picker_deployment(one), 1))
    full = quota({"pods": "4", "services": "2"}, {"pods": "3", "services": "2"})
    assert len(said(_namespace(full), engine=_CPU)) == 2
    assert said(replace(_namespace(full), present=there), engine=_CPU) == []
    [refusal] = said(replace(_namespace(full), present=there), engine=_CPU, replicas=4)
    assert "allows 4 of pods; 5 needed" in refusal.message


@pytest.mark.parametrize(
    ("scopes", "refused", "left_out"),
    [
        (["NotTerminating", "NotBestEffort"], 1, 0),
        (["Terminating"], 0, 0),
        (["BestEffort"], 0, 0),
        (["PriorityClass"], 0, 1),
        (["BestEffort", "PriorityClass"], 0, 0),
    ],
)
def test_scopes(scopes: list[str], refused: int, left_out: int) -> None:
    for spec in (
        {"scopes": scopes},
        {"scopeSelector": {"matchExpressions": [{"scopeName": each} for each in scopes]}},
    ):
        namespace = _namespace(quota({"pods": "1"}, **spec))
        assert len(said(namespace)) == refused
        assert [each.reason for each in said(namespace, Outcome.WARN)] == ["QuotaNotCounted"] * left_out


def test_what_it_does_not_ask_for() -> None:
    assert said(_namespace(quota({"requests.storage": "0", "services.loadbalancers": "0"}))) == []


def test_as_many_engines_as_an_autoscaler_may_want_are_counted() -> None:
    scaled: dict[str, Any] = {"replicas": 1, "autoscaling": {"minReplicas": 2, "maxReplicas": 4}}
    [refusal] = said(_namespace(quota({"pods": "4"})), **scaled)
    assert "5 needed (4 engine pods" in refusal.message
    assert refusal.field == "spec.autoscaling.maxReplicas"
    assert said(_namespace(quota({"pods": "6"})), **scaled) == []
