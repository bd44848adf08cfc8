"""What a pod template may mount, and where."""

from typing import Any

import pytest
from tests.unit.operator.planning.pod_template.test_refuse import MOUNTS, SIDECAR, of_engine, plan, problems

from kvtier_operator.planning.objects.engine.deployment import engine_deployment, planned_engine_template
from kvtier_operator.planning.objects.engine.volumes import HOME
from kvtier_operator.planning.pod_template.tables import MountPaths

NVME = {
    "cpu": {"capacity": "100Gi"},
    "disk": {"capacity": "1Ti", "volume": {"hostPath": {"path": "/mnt/nvme0"}}},
}


@pytest.mark.parametrize(
    ("path", "hides"),
    [
        ("/a/b", True),
        ("/a/b/", True),
        ("//a//b", True),
        ("a/b", True),
        ("/a/../a/b", True),
        ("/a/b/c", True),
        ("/a", False),
        ("/a/bc", False),
        ("/", False),
        (HOME, True),
        (f"{HOME}/.cache", False),
    ],
)
def test_what_hides_a_mount(path: str, *, hides: bool) -> None:
    own = MountPaths.of({"volumeMounts": [{"mountPath": "/a/b"}, {"mountPath": f"{HOME}/"}]})
    assert (path in own) is hides


def test_a_folder_that_holds_nothing_planned_takes_further_mounts() -> None:
    cache = {"name": "cache", "mountPath": f"{HOME}/.cache"}
    made = plan({"spec": {**of_engine(volumeMounts=[cache]), "volumes": [{"name": "cache", "emptyDir": {}}]}})
    engine = engine_deployment(made)["spec"]["template"]["spec"]["containers"][0]
    assert cache in engine["volumeMounts"]


def test_the_disk_tier_stays_on_its_volume() -> None:
    tier = {"capacity": "1Ti", "volume": {"emptyDir": {}}}
    disk: dict[str, Any] = {"tiers": {"cpu": {"capacity": "100Gi"}, "disk": tier}}
    mounts = planned_engine_template(plan(None, **disk))["spec"]["containers"][0]["volumeMounts"]
    inside = f"{mounts[-1]['mountPath']}/kvtier"
    [problem] = problems({"spec": of_engine(volumeMounts=[{"name": "x", "mountPath": inside}])}, **disk)
    assert problem.field == f"spec.engine.podTemplate.spec.{MOUNTS}[{inside}]"


@pytest.mark.parametrize(
    ("spec", "volume"),
    [
        ({"model_fields": {"source": "file:///models"}}, "model"),
        ({"tiers": NVME}, "kv-disk-0"),
    ],
    ids=["for reading", "for a tier"],
)
def test_a_folder_of_the_node_is_the_engines_alone(spec: dict[str, Any], volume: str) -> None:
    """A sidecar would write where the engine reads."""
    mount = {"name": volume, "mountPath": "/elsewhere"}
    template = {"spec": {"containers": [SIDECAR | {"volumeMounts": [mount]}]}}
    made = planned_engine_template(plan(None, **spec))["spec"]["volumes"]
    assert "hostPath" in next(each for each in made if each["name"] == volume)
    [problem] = problems(template, **spec)
    assert problem.field == "spec.engine.podTemplate.spec.containers[more].volumeMounts[/elsewhere].name"
    assert problem.message.startswith("a folder of the node is the engine's alone")
