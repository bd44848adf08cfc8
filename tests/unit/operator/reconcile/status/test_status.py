"""Conditions: each seen to hold and to fail, with what a person needs to know."""

from dataclasses import replace
from typing import Any

import pytest
from tests.cases.namespaces import limit_range, quota
from tests.unit.operator.reconcile.objects import planned
from tests.unit.operator.reconcile.statuses import FULL, READY, conditions

from kvtier_operator.planning.namespace.namespace import Namespace
from kvtier_operator.planning.objects.names import Component
from kvtier_operator.reconcile.api_server.kinds import BY_NAME
from kvtier_operator.reconcile.apply.events import transitions
from kvtier_operator.reconcile.apply.failure import ApplyFailure
from kvtier_operator.reconcile.facts.pod import NotReadyPod
from kvtier_operator.reconcile.status.build import StatusInput, build_status
from kvtier_operator.reconcile.status.condition import false_condition
from kvtier_operator.reconcile.status.unserved_kinds import UnservedKinds, unserved_kinds


def test_all_is_well() -> None:
    found = conditions(FULL)
    assert {name: each["status"] for name, each in found.items()} == {
        "Accepted": "True",
        "BudgetFits": "True",
        "NodesFit": "False",  # there are no nodes, but the pods run
        "EnginesReady": "True",
        "RouterReady": "True",
        "Ready": "True",
    }
    assert all(each["observedGeneration"] == 3 for each in found.values())
    assert found["Ready"]["message"] == "2 of 2 engine pods ready; 1 of 1 picker pods ready"


_GIB = 1 << 30


@pytest.mark.parametrize(
    ("cpu", "disk", "said"),
    [
        ({}, {}, ""),
        ({"pinnedBytes": 99 * _GIB}, {}, "; each has a CPU tier of 100 GiB, locked in memory"),
        (
            {"pinnedBytes": 20 * _GIB},
            {"pays": True},
            (
                "; each has a CPU tier of 100 GiB, of which 20 GiB are locked in memory: "
                "its log says what refused the rest"
            ),
        ),
        (
            {},
            {"pays": False},
            (
                "; its disk tier is not used, because computing is sooner than reading from it: "
                "give it a faster disk, or none"
            ),
        ),
    ],
)
def test_what_engines_really_got_of_their_tiers(cpu: dict[str, Any], disk: dict[str, Any], said: str) -> None:
    observed = {"bytes": 100 * _GIB, "tokens": 409_600, "source": "Observed"}
    known = replace(FULL.plan, tiers={"cpu": observed | cpu, "disk": observed | disk})
    found = conditions(replace(FULL, plan=known))
    assert found["EnginesReady"]["message"] == f"2 of 2 engine pods ready{said}"


_WAITS = NotReadyPod("new", "", "Unschedulable", "1 Insufficient nvidia.com/gpu", rank=3)
_DRAINS = NotReadyPod("old", "node", "", "", rank=9, leaving=True)
_ENGINES = [
    ({"engine": None}, "NotCreated", ""),
    ({"engine": replace(READY, ready=1)}, "Progressing", "1 of 2 engine pods ready; one has"),
    ({"engine": replace(READY, exist=3)}, "Progressing", "3 exist (1 of an older spec)"),
    ({"engine": replace(READY, current=False)}, "Progressing", ""),
    ({"engine": replace(READY, ready=0, stalled=True)}, "ProgressDeadlineExceeded", "logs"),
    (
        {"engine": replace(READY, exist=0, failed_reason="FailedCreate", failed_message="exceeded quota: q")},
        "QuotaExceeded",
        "exceeded quota: q; raise the namespace's ResourceQuota",
    ),
    (
        {"engine": replace(READY, exist=0, failed_reason="FailedCreate", failed_message="webhook says no")},
        "FailedCreate",
        "webhook says no; the namespace's LimitRanges",
    ),
    ({"engine": replace(READY, ready=0, lacks_model=True)}, "ImageVolumesOff", "feature gate ImageVolume"),
    ({"failures": (ApplyFailure(Component.ENGINE, "Forbidden", "because"),)}, "Forbidden", "because"),
    (
        {"engine": replace(READY, ready=1), "engine_troubles": (_WAITS,)},
        "Unschedulable",
        "Insufficient nvidia.com/gpu; if NodesFit is True, other pods hold the room",
    ),
    (
        {"engine": replace(READY, ready=1), "engine_troubles": (_WAITS, _DRAINS)},
        "Progressing",
        "pod new waits for the room of 1 pod still draining",
    ),
]


@pytest.mark.parametrize(("change", "reason", "words"), _ENGINES)
def test_engines_are_not_ready(change: dict[str, Any], reason: str, words: str) -> None:
    found = conditions(replace(FULL, **change))
    assert (found["EnginesReady"]["status"], found["EnginesReady"]["reason"]) == ("False", reason)
    assert words in found["EnginesReady"]["message"]
    assert (found["Ready"]["status"], found["Ready"]["reason"]) == ("False", reason)


def test_the_most_telling_pod_is_named_with_how_many_are_alike_and_what_to_do() -> None:
    troubles = [
        NotReadyPod("pod-a", "node-1", "ImagePullBackOff", "no such image", 1),
        NotReadyPod("pod-b", "", "ImagePullBackOff", "no such image", 1),
        NotReadyPod("pod-c", "", "", "", 9),
    ]
    found = conditions(replace(FULL, engine=replace(READY, ready=0), engine_troubles=troubles))
    said = found["EnginesReady"]["message"]
    assert "pod pod-a on node node-1 (and 1 more like it): ImagePullBackOff: no such image" in said
    assert "spec.imagePullSecrets" in said


@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        (Namespace(limit_ranges=(limit_range(max={"cpu": "500m"}),)), "LimitRangeRefuses"),
        (Namespace(quotas=(quota({"pods": "1"}),)), "QuotaExceeded"),
        (Namespace(quotas=(quota({"limits.cpu": "9"}),)), "QuotaUnspecified"),
    ],
)
def test_what_the_namespace_refuses_is_said_and_holds_nothing_up(bound: Namespace, reason: str) -> None:
    known, wanted = planned({"spec.replicas": 2}, bound)
    assert wanted
    found = conditions(replace(FULL, plan=known))
    assert (found["BudgetFits"]["status"], found["BudgetFits"]["reason"]) == ("False", reason)
    assert found["Accepted"]["status"] == found["Ready"]["status"] == "True"
    for part in ("engine", "picker"):
        waiting = replace(FULL, plan=known, **{part: replace(READY, ready=0)})  # type: ignore[arg-type]
        first, _, others = found["BudgetFits"]["message"].partition("; ")
        said = conditions(waiting)["Ready"]["message"]
        assert f"; BudgetFits: {first}" in said
        # the rest stands in the other condition alone
        assert others
        assert others not in said


def test_a_storage_class_is_not_missing_where_engines_have_their_volumes() -> None:
    missing = false_condition("BudgetFits", "StorageClassMissing", "the cluster has no storage class manual")
    known = replace(FULL.plan, budget_fits=missing)
    assert conditions(replace(FULL, plan=known))["BudgetFits"]["status"] == "True"
    waiting = replace(FULL, plan=known, engine=replace(READY, ready=1))
    assert conditions(waiting)["BudgetFits"]["reason"] == "StorageClassMissing"


@pytest.mark.parametrize(
    "bound",
    [
        Namespace(limit_ranges=(limit_range(default={"cpu": "4"}),)),
        Namespace(quotas=(quota({"pods": "3"}),)),  # enough for what runs, not for a rollout
    ],
)
def test_a_remark_on_the_namespace_is_no_refusal(bound: Namespace) -> None:
    known, _ = planned({"spec.replicas": 2, "spec.router.replicas": 1}, bound)
    assert conditions(replace(FULL, plan=known))["BudgetFits"]["reason"] == "Fits"


def test_why_no_node_takes_the_engines_stands_beside_their_not_being_ready() -> None:
    said = conditions(replace(FULL, engine=replace(READY, ready=0)))["Ready"]["message"]
    assert said.startswith("EnginesReady: 0 of 2")
    assert "NodesFit: room for 0 engines" in said


_ROUTERS = [
    ({"picker": None}, "NotCreated", ""),
    ({"picker": replace(READY, ready=0)}, "Progressing", "0 of 2 picker pods ready"),
    ({"kinds": UnservedKinds(missing_crds=("a.x", "b.x"))}, "CRDsMissing", "a.x, b.x: install them"),
    (
        {
            "kinds": UnservedKinds(missing_crds=("a.x",)),
            "picker": replace(READY, failed_reason="FailedCreate", failed_message="webhook says no", ready=0),
        },
        "CRDsMissing",
        "; picker pods: a pod cannot be made: webhook says no",
    ),
    ({"failures": (ApplyFailure(Component.PICKER, "NameTaken", "Service x"),)}, "NameTaken", "Service x"),
    (
        {"kinds": UnservedKinds(failures=(ApplyFailure(Component.ROUTER, "Forbidden", "no"),))},
        "Forbidden",
        "no",
    ),
]


def test_of_several_pickers_the_leader_is_ready_and_no_other() -> None:
    led = replace(READY, ready=1, stalled=True)
    found = conditions(replace(FULL, picker=led))["RouterReady"]
    assert (found["status"], found["reason"]) == ("True", "AllReady")
    assert found["message"] == "1 of 2 picker pods ready, which leads; the others stand by"
    kept = NotReadyPod("p-2", "", "ImagePullBackOff", "not there", 1)
    found = conditions(replace(FULL, picker=led, picker_troubles=(kept,)))["RouterReady"]
    assert found["status"] == "True"
    assert "1 of 2 picker pods ready; pod p-2: ImagePullBackOff: not there" in found["message"]


@pytest.mark.parametrize(
    "facts",
    [
        {"ready": 0},
        {"ready": 0, "stalled": True},
        {"ready": 1, "updated": 1},
        {"ready": 1, "exist": 3},
        {"ready": 1, "current": False},
    ],
    ids=str,
)
def test_several_pickers_without_a_leader_of_the_current_template(facts: dict[str, Any]) -> None:
    found = conditions(replace(FULL, picker=replace(READY, **facts)))["RouterReady"]
    assert (found["status"], found["reason"]) == ("False", "Progressing")


@pytest.mark.parametrize(("change", "reason", "words"), _ROUTERS)
def test_the_router_is_not_ready(change: dict[str, Any], reason: str, words: str) -> None:
    found = conditions(replace(FULL, **change))
    assert (found["RouterReady"]["status"], found["RouterReady"]["reason"]) == ("False", reason)
    assert words in found["RouterReady"]["message"]
    assert found["EnginesReady"]["status"] == "True"
    assert found["Ready"]["reason"] == reason


_TAKEN = "ConfigMap x-picker is there already and not this resource's"


@pytest.mark.parametrize(
    "change",
    [
        {"failures": (ApplyFailure(Component.PICKER, "NameTaken", _TAKEN),)},
        {"failures": (ApplyFailure(Component.ENGINE, "NameTaken", _TAKEN),)},
        {"kinds": UnservedKinds(failures=(ApplyFailure(Component.ROUTER, "NameTaken", _TAKEN),))},
    ],
    ids=["picker", "engine", "kind"],
)
def test_what_keeps_all_from_being_made_is_the_reason_of_each(change: dict[str, Any]) -> None:
    found = conditions(replace(FULL, engine=None, picker=None, **change))
    for name in ("EnginesReady", "RouterReady", "Ready"):
        assert (found[name]["status"], found[name]["reason"]) == ("False", "NameTaken")
        assert _TAKEN in found[name]["message"]
        assert "yet" not in found[name]["message"]


def test_what_is_deleted_beside_a_rejected_spec_is_not_on_its_way() -> None:
    rejected = planned({"spec.engine.tensorParallelSize": 3})[0]
    found = conditions(replace(FULL, plan=rejected, engine=None, picker=None))
    for name, whose in (("EnginesReady", "engines'"), ("RouterReady", "picker's")):
        said = found[name]
        assert (said["status"], said["reason"]) == ("False", "NotCreated")
        assert (
            said["message"] == f"the {whose} Deployment is not there, and is not made while Accepted is False"
        )
    assert found["Ready"]["reason"] == found["Accepted"]["reason"]


def test_monitoring_without_its_crds_is_told_and_no_failure() -> None:
    kinds = unserved_kinds([BY_NAME["ServiceMonitor"], BY_NAME["HTTPRoute"]], lambda _: "not installed")
    assert kinds.missing_crds == ("httproutes.gateway.networking.k8s.io",)
    assert kinds.left_out == ("servicemonitors.monitoring.coreos.com",)
    found = conditions(replace(FULL, kinds=replace(kinds, missing_crds=())))
    assert found["RouterReady"]["status"] == "True"
    assert "servicemonitors.monitoring.coreos.com" in found["RouterReady"]["message"]


def test_a_rejected_spec_keeps_the_figures_of_what_runs() -> None:
    before = build_status(FULL, {})
    rejected = planned({"spec.engine.tensorParallelSize": 3})[0]
    after = build_status(replace(FULL, generation=4, plan=rejected), before)
    assert {name: after[name] for name in ("tiers", "router", "selector")} == {
        name: before[name] for name in ("tiers", "router", "selector")
    }
    found = {each["type"]: each for each in after["conditions"]}
    assert found["Accepted"]["reason"] == "HeadsNotDivisible"
    assert "keeps running" in found["Accepted"]["message"]
    assert found["EnginesReady"]["status"] == "True"
    assert found["Ready"]["status"] == "False"


def test_a_default_of_before_that_is_stored_is_kept_and_the_remedy_told() -> None:
    before = planned({"spec.tiers.cpu.memlock": {"policy": "Off"}})[0]
    found = conditions(replace(FULL, plan=before))["Accepted"]
    assert (found["status"], found["reason"]) == ("True", "AcceptedWithWarnings")
    assert "spec.tiers.cpu.memlock.policy: Off: the tier is not page-locked" in found["message"]
    assert "set Prefer, which needs no rights. Off was the default once" in found["message"]
    assert "memlock" not in conditions(FULL)["Accepted"]["message"]


def test_a_spec_that_is_no_spec() -> None:
    invalid, objects = planned({"spec.model.name": 7})
    assert not objects
    found = conditions(replace(FULL, plan=invalid))
    assert found["Accepted"]["reason"] == "Invalid"
    assert "spec.model.name" in found["Accepted"]["message"]
    assert {found[name]["status"] for name in ("BudgetFits", "NodesFit")} == {"Unknown"}


def test_times_change_with_status_or_reason_alone() -> None:
    before = build_status(FULL, {})
    same = build_status(replace(FULL, now="2027-01-01T00:00:00Z"), before)
    assert same == before
    worse = conditions(replace(FULL, engine=replace(READY, ready=1), now="2027-01-01T00:00:00Z"), before)
    changed = {name for name, each in worse.items() if each["lastTransitionTime"].startswith("2027")}
    assert changed == {"EnginesReady", "Ready"}


def _told(before: StatusInput | None, after: StatusInput) -> list[tuple[str, str]]:
    old = build_status(before, {})["conditions"] if before else []
    return [
        (each["type"], each["status"]) for each in transitions(old, build_status(after, {})["conditions"])
    ]


def test_coming_up_is_no_event_and_being_ready_is_one() -> None:
    rising = replace(FULL, engine=replace(READY, ready=1))
    assert _told(None, rising) == [("NodesFit", "False")]
    assert _told(rising, rising) == []
    assert _told(rising, replace(rising, engine=replace(READY, ready=0))) == []
    assert _told(rising, FULL) == [("Ready", "True")]
    assert _told(FULL, rising) == [("EnginesReady", "False")]


def test_what_was_wrong_and_is_right_again_is_an_event() -> None:
    missing = replace(FULL, kinds=UnservedKinds(missing_crds=("a.x",)))
    assert _told(FULL, missing) == [("RouterReady", "False")]
    assert _told(missing, FULL) == [("RouterReady", "True"), ("Ready", "True")]
