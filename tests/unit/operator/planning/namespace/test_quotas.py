from dataclasses import replace

import pytest
from tests.cases.namespaces import limit_range, quota
from tests.unit.operator.planning.namespace.refused import plan, said

from kvtier_operator.planning.namespace.namespace import Namespace
from kvtier_operator.planning.namespace.quota import Quota
from kvtier_operator.planning.namespace.storage import StorageClass
from kvtier_operator.planning.namespace.workload import workload
from kvtier_operator.planning.objects.engine_deployment import engine_deployment
from kvtier_operator.planning.objects.picker_deployment import picker_deployment
from kvtier_operator.planning.plan import Outcome

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
        "ResourceQuota team allows 8 of requests.cpu; 9 needed (2 engine pods of 4, 2 picker pods of 500m): "
        "lower spec.engine.resources, or ask the namespace's owner for 1 more"
    )


def test_more_than_others_leave() -> None:
    [refusal] = said(_namespace(quota({"pods": "4"}, {"pods": "2"})))
    assert "allows 4 of pods, 2 of it used by others; 4 needed" in refusal.message
    assert refusal.field == "spec.replicas"
    assert said(_namespace(quota({"pods": "6"}, {"pods": "2"}))) == []


@pytest.mark.parametrize(
    ("hard", "field", "words"),
    [
        ({"requests.nvidia.com/gpu": "3"}, "spec.engine.tensorParallelSize", "4 needed (2 engine pods of 2)"),
        ({"limits.memory": "20Gi"}, "spec.tiers.cpu.capacity", "2 picker pods of 1.38 GiB"),
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
        ({"count/pods": "2"}, "spec.replicas", "4 needed (2 engine pods of 1, 2 picker pods of 1)"),
        ({"services": "1"}, "metadata.namespace", "2 needed"),
    ],
)
def test_what_is_counted(hard: dict[str, str], field: str, words: str) -> None:
    namespace = replace(_namespace(quota(hard)), storage_classes=(StorageClass("fast", default=True),))
    [refusal] = said(namespace, engine=_CPU, tiers=_CLAIM | _PAGES)
    assert refusal.field == field
    assert words in refusal.message


def test_the_picker_alone() -> None:
    [refusal] = said(_namespace(quota({"requests.cpu": "500m"})), replicas=0, engine=_CPU)
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


def test_a_default_sets_it() -> None:
    given = limit_range(default={"cpu": "2"}, defaultRequest={"cpu": "1"})
    namespace = Namespace(limit_ranges=(given,), quotas=(quota({"limits.cpu": "8"}),))
    assert said(namespace) == []
    namespace = replace(namespace, quotas=(quota({"limits.cpu": "7"}),))
    assert "2 engine pods of 2, 2 picker pods of 2" in said(namespace)[0].message


def test_pickers_that_elect_a_leader_are_all_replaced_at_once() -> None:
    [refusal] = said(_namespace(quota({"pods": "5"})), router={"replicas": 2})
    assert "6 needed (2 engine pods of 1, 4 picker pods of 1)" in refusal.message


def test_what_runs_already_is_not_counted_twice() -> None:
    one = plan(engine=_CPU)
    there = (workload(engine_deployment(one), 2), workload(picker_deployment(one), 1))
    full = quota({"pods": "4", "services": "2"}, {"pods": "3", "services": "2"})
    assert len(said(_namespace(full), engine=_CPU)) == 2
    assert said(replace(_namespace(full), present=there), engine=_CPU) == []
    [refusal] = said(replace(_namespace(full), present=there), engine=_CPU, replicas=3)
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
