"""What admission adds to Deployments or writes otherwise, and who scales: it stays as they have it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cases.pod_template import TEMPLATE
from tests.cluster.harness.operator.operator import Operator
from tests.cluster.harness.providers.provider import Provider
from tests.cluster.harness.stand_ins.webhook import mutating_deployments
from tests.cluster.operator.world import Document, World, resource

ENGINE = ("apps/v1", "Deployment", "qwen-engine")
MIRROR = "mirror.example/"
MESH = {"name": "mesh", "image": f"{MIRROR}mesh:1"}


def _injected(deployment: Document) -> list[Document]:
    """A sidecar and an annotation that kvtier knows nothing of, and another image than it wants."""
    template = deployment["spec"]["template"]
    patch: list[Document] = []
    if not any(container["name"] == "mesh" for container in template["spec"]["containers"]):
        patch.append({"op": "add", "path": "/spec/template/spec/containers/-", "value": MESH})
    image: str = template["spec"]["containers"][0]["image"]
    if not image.startswith(MIRROR):
        at = "/spec/template/spec/containers/0/image"
        patch.append({"op": "replace", "path": at, "value": f"{MIRROR}{image}"})
    annotations = template["metadata"].get("annotations") or {}
    if "mesh.example/injected" not in annotations:
        value = annotations | {"mesh.example/injected": "yes"}
        patch.append({"op": "add", "path": "/spec/template/metadata/annotations", "value": value})
    return patch


@pytest.fixture
def injecting(world: World, provider: Provider, tmp_path: Path) -> Iterator[None]:
    if provider.name != "local":
        pytest.skip("the API server of another machine does not reach a webhook here")
    with mutating_deployments(world.api, world.namespace, tmp_path, _injected):
        yield


@pytest.mark.usefixtures("injecting")
@pytest.mark.parametrize("engine", [{}, {"podTemplate": TEMPLATE}], ids=["plain", "with a template"])
def test_what_admission_makes_of_it_stays(world: World, operator: Operator, engine: dict[str, Any]) -> None:
    world.create(resource(engine=engine))
    world.until_settled()
    pod = _pod(world)
    assert pod["containers"][0]["image"].startswith(MIRROR)
    assert pod["containers"][-1]["name"] == "mesh"
    before = operator.writes("Deployment")
    # somebody touches it, so that it is compared again; then something that the operator has to mend
    world.patch(*ENGINE, {"metadata": {"annotations": {"somebody": "was here"}}})
    _mended(world)
    assert operator.writes("Deployment") - before <= 1
    world.change(replicas=3)
    _until_replicas(world, 3)
    _mended(world)
    assert operator.writes("Deployment") - before <= 2
    assert [container["name"] for container in _pod(world)["containers"]] == [
        container["name"] for container in pod["containers"]
    ]


def test_a_template_that_is_in_place_is_not_written_again(world: World, operator: Operator) -> None:
    """Also where it says what the server leaves out, or writes otherwise."""
    world.create(resource(engine={"podTemplate": TEMPLATE}))
    world.until_settled()
    before = operator.writes("Deployment")
    world.patch(*ENGINE, {"metadata": {"annotations": {"somebody": "was here"}}})
    _mended(world)
    assert operator.writes("Deployment") == before


def test_who_scales_the_resource_is_not_overruled(world: World, operator: Operator) -> None:
    """As a HorizontalPodAutoscaler does, by the subresource."""
    world.create(resource())
    world.until_settled()
    before = operator.writes("Deployment")
    for replicas in (5, 3, 4):
        world.scale(replicas)
        _until_replicas(world, replicas)
    _mended(world)
    assert world.get()["spec"]["replicas"] == 4
    assert operator.writes("Deployment") - before == 3


def _until_replicas(world: World, number: int) -> None:
    world.until_object(*ENGINE, lambda live: live and live["spec"]["replicas"] == number)


def _pod(world: World) -> Document:
    live = world.find(*ENGINE)
    assert live
    pod: Document = live["spec"]["template"]["spec"]
    return pod


def _mended(world: World) -> None:
    """Takes a child away and waits until it is back: by then whatever came before was seen."""
    old = world.find("v1", "ConfigMap", "qwen-picker")
    assert old
    world.core.delete_namespaced_config_map("qwen-picker", world.namespace)
    world.until_object(
        "v1",
        "ConfigMap",
        "qwen-picker",
        lambda live: live and live["metadata"]["uid"] != old["metadata"]["uid"],
    )
