"""What a person reads in the status, and how it follows what happens."""

from collections.abc import Mapping

from tests.cluster.operator.world import World, condition, resource
from tests.shared.waiting import eventually

_GIB = 1 << 30


def test_a_new_resource_says_what_was_planned(world: World) -> None:
    world.create(resource(engine={"gpuMemory": "80Gi", "tensorParallelSize": 2}))
    status = world.until_settled()["status"]
    assert [condition["type"] for condition in status["conditions"]] == [
        "Accepted",
        "BudgetFits",
        "NodesFit",
        "EnginesReady",
        "RouterReady",
        "Ready",
        "Reconciling",
    ]
    assert status["tiers"]["cpu"] == {"bytes": 100 * _GIB, "tokens": 409_600, "source": "Planned"}
    assert status["router"]["entries"]["cpuPrefix"] == 6400
    assert status["router"]["tokensPerEntry"] == 64
    assert all(
        condition["observedGeneration"] == 1 and condition["message"] for condition in status["conditions"]
    )


def test_a_rejected_edit_leaves_what_runs_alone(world: World) -> None:
    world.create(resource())
    before = world.until_settled()
    versions = {key: child["metadata"]["resourceVersion"] for key, child in world.children().items()}
    world.change(engine={"tensorParallelSize": 3})
    said = world.until_condition("Accepted", status="False")
    assert said["reason"] == "HeadsNotDivisible"
    assert "spec.engine.tensorParallelSize" in said["message"]
    assert {key: child["metadata"]["resourceVersion"] for key, child in world.children().items()} == versions
    after = world.get()["status"]
    assert after["tiers"] == before["status"]["tiers"]
    ready = condition({"status": after}, "Ready")
    assert ready
    assert ready["reason"] == "HeadsNotDivisible"
    world.change(engine={"tensorParallelSize": 1})
    world.until_condition("Accepted", status="True")


def test_engines_and_picker_become_ready_and_are_counted(world: World) -> None:
    world.create(resource())
    world.until_condition("EnginesReady", reason="Progressing")
    world.make_ready()
    said = world.until_condition("EnginesReady", status="True")
    assert said["message"] == "2 of 2 engine pods ready"
    status = world.get()["status"]
    assert (status["replicas"], status["readyReplicas"]) == (2, 2)


def test_scaling_through_the_subresource(world: World) -> None:
    world.create(resource())
    status = world.until_settled()["status"]
    assert "app.kubernetes.io/instance=qwen" in status["selector"]
    world.scale(3)
    world.until_object(
        "apps/v1", "Deployment", "qwen-engine", lambda live: live and live["spec"]["replicas"] == 3
    )
    world.scale(0)
    world.until_object(
        "apps/v1", "Deployment", "qwen-engine", lambda live: live and live["spec"]["replicas"] == 0
    )
    world.make_ready()
    assert world.until_condition("EnginesReady", status="True")["reason"] == "ScaledToZero"


def test_an_image_that_cannot_be_pulled(world: World) -> None:
    world.create(resource())
    world.until_settled()
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x"'}
    world.add_pod(
        "qwen-engine-a",
        {"containerStatuses": [_container("engine", {"waiting": waiting})], "phase": "Pending"},
    )
    said = world.until_condition("EnginesReady", reason="ImagePullBackOff")["message"]
    assert "qwen-engine-a" in said
    assert 'Back-off pulling image "x"' in said
    world.core.delete_namespaced_pod("qwen-engine-a", world.namespace, grace_period_seconds=0)
    world.until_condition("EnginesReady", reason="Progressing")


def test_what_the_doctor_found_in_the_pod(world: World) -> None:
    world.create(resource())
    world.until_settled()
    verdict = "hugetlb limit is 0 B, 100 GiB needed"
    terminated = {"exitCode": 1, "message": verdict, "reason": "Error"}
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
    doctor = _container("doctor", waiting) | {"lastState": {"terminated": terminated}}
    world.add_pod("qwen-engine-a", {"initContainerStatuses": [doctor], "phase": "Pending"})
    assert verdict in world.until_condition("EnginesReady", reason="DoctorFailed")["message"]


def test_a_pod_that_no_node_takes(world: World) -> None:
    world.create(resource())
    world.until_settled()
    unscheduled = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 Insufficient hugepages-2Mi",
    }
    world.add_pod("qwen-engine-a", {"conditions": [unscheduled], "phase": "Pending"})
    said = world.until_condition("EnginesReady", reason="Unschedulable")["message"]
    assert "3 Insufficient hugepages-2Mi" in said


def test_a_quota_that_leaves_no_room_for_pods(world: World) -> None:
    world.create(resource())
    world.until_settled()
    said = 'pods "qwen-engine-x" is forbidden: exceeded quota: team, requested: pods=1, limited: pods=4'
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": said}
    world.deployment_says("qwen-engine", conditions=[failure])
    assert "exceeded quota: team" in world.until_condition("EnginesReady", reason="QuotaExceeded")["message"]


def test_events_tell_of_transitions_only(world: World) -> None:
    world.create(resource())
    world.until_settled()
    world.make_ready()
    world.until_condition("EnginesReady", status="True")
    world.change(engine={"tensorParallelSize": 3})
    world.until_condition("Accepted", status="False")
    # it comes after the status
    news = ("Warning", "AcceptedHeadsNotDivisible")
    eventually(lambda: news in world.events(), "an Event of the rejection")
    told = world.events()
    assert told.count(news) == 1
    assert ("Warning", "EnginesReadyProgressing") not in told
    assert len(told) == len(set(told))


def _container(name: str, state: Mapping[str, object]) -> dict[str, object]:
    return {"name": name, "image": "x", "imageID": "", "ready": False, "restartCount": 0, "state": state}
