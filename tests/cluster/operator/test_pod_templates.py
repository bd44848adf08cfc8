"""What authors add to pods, on a real API server: taken as it is, or refused before anything is written."""

from typing import Any

import pytest
from tests.cases.pod_template import SIDECAR, TEMPLATE
from tests.cluster.operator.world import Document, World, resource


def _pod(world: World, component: str = "engine") -> Document:
    live = world.until_object("apps/v1", "Deployment", f"qwen-{component}", lambda each: each)
    assert live
    found: Document = live["spec"]["template"]["spec"]
    return found


def test_everything_that_is_taken_comes_to_the_pods(world: World) -> None:
    picker = {"containers": [{"name": "picker", "env": [{"name": "HTTPS_PROXY", "value": "http://proxy"}]}]}
    world.create(resource(engine={"podTemplate": TEMPLATE}, router={"podTemplate": {"spec": picker}}))
    world.until_settled()
    pod = _pod(world)
    assert [container["name"] for container in pod["containers"]] == ["engine", "more"]
    assert [container["name"] for container in pod["initContainers"]] == [
        "kvtier-payload",
        "doctor",
        "before",
    ]
    assert pod["containers"][0]["startupProbe"]["periodSeconds"] == 7
    assert "runAsUser" not in pod["securityContext"]
    assert pod["serviceAccountName"] == "reader"
    assert {"name": "HTTPS_PROXY", "value": "http://proxy"} in _pod(world, "picker")["containers"][0]["env"]
    world.until_condition("Accepted", status="True")


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        ({"volumes": [{"name": "v", "configMap": {"label": "x"}}]}, "label"),
        ({"volumes": [{"name": "v", "configMap": {"name": 7}}]}, "name"),
        ({"affinity": {"nodeAffinity": {"required": []}}}, "required"),
        ({"priorityClassName": "No Name"}, "priorityClassName"),
        ({"containers": [SIDECAR | {"volumeMounts": [{"name": "gone", "mountPath": "/x"}]}]}, "volumeMounts"),
        (
            {"containers": [{"name": "engine", "livenessProbe": {"exec": {"command": ["x"]}}}]},
            "livenessProbe",
        ),
    ],
)
def test_what_the_server_refuses_is_said_and_nothing_is_made(
    world: World, pod: dict[str, Any], words: str
) -> None:
    world.create(resource(engine={"podTemplate": {"spec": pod}}))
    said = world.until_condition("EnginesReady", reason="PodTemplateInvalid")["message"]
    assert said.startswith("spec.engine.podTemplate: the API server does not take Deployment qwen-engine")
    assert words in said
    assert "\n" not in said
    assert world.children() == {}
    world.change(engine={"podTemplate": None})
    world.until_object("apps/v1", "Deployment", "qwen-engine", lambda each: each)


def test_what_runs_stays_when_a_template_is_refused(world: World) -> None:
    world.create(resource())
    before = _pod(world)
    made = {name: child["metadata"]["resourceVersion"] for name, child in world.children().items()}
    change: Document = {"router": {"weights": {"queue": 7}, "podTemplate": {"spec": {"dnsPolicy": "Wrong"}}}}
    world.change(**change)
    world.until_condition("RouterReady", reason="PodTemplateInvalid")
    assert {name: child["metadata"]["resourceVersion"] for name, child in world.children().items()} == made
    assert _pod(world) == before


def test_what_the_planner_owns_is_refused_by_its_name(world: World) -> None:
    world.create(resource(engine={"podTemplate": {"spec": {"containers": [{"name": "engine", "args": []}]}}}))
    said = world.until_condition("Accepted", reason="Invalid")["message"]
    assert "spec.engine.podTemplate.spec.containers[engine].args: write spec.engine.extraArgs" in said
    assert world.children() == {}
