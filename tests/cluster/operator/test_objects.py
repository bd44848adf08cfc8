"""What the operator makes of a resource, and what it does when somebody touches it."""

import pytest
from tests.cluster.harness.api.kvcachetiers import Document
from tests.cluster.operator.world import World, resource

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.planning.base.names import MANAGED_BY_LABEL
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

_OF_CRDS = {"InferencePool", "HTTPRoute"}


def _planned(document: Document) -> set[tuple[str, str]]:
    built = build_objects(make_plan(parse_resource(document, "test"), Observed()))
    return {
        (document["kind"], document["metadata"]["name"])
        for document in built
        if document["kind"] not in _OF_CRDS
    }


def test_every_object_of_the_plan_is_made_and_owned(world: World) -> None:
    made = world.create(resource())
    world.until_settled()
    children = world.children()
    assert set(children) == _planned(made)
    for child in children.values():
        (owner,) = child["metadata"]["ownerReferences"]
        assert owner["uid"] == made["metadata"]["uid"]
        assert owner["controller"] is True
        assert not owner.get("blockOwnerDeletion")
        managers = [(field["manager"], field["operation"]) for field in child["metadata"]["managedFields"]]
        assert managers == [("kvtier", "Apply")]
    assert "finalizers" not in made["metadata"]
    assert "annotations" not in world.get()["metadata"]


def test_a_changed_spec_changes_its_objects_and_prunes_what_it_no_longer_wants(world: World) -> None:
    world.create(resource(engine={"nodeSelector": {"pool": "a"}}))
    world.until_settled()
    assert ("PodDisruptionBudget", "qwen-engine") in world.children()
    world.change(replicas=1, engine={"nodeSelector": None})
    world.until_settled()
    children = world.children()
    assert ("PodDisruptionBudget", "qwen-engine") not in children
    spec = children["Deployment", "qwen-engine"]["spec"]
    assert spec["replicas"] == 1
    assert "nodeSelector" not in spec["template"]["spec"]


def test_an_edited_object_is_repaired_and_a_deleted_one_comes_back(world: World) -> None:
    world.create(resource())
    world.until_settled()
    image = (
        world.apps.read_namespaced_deployment("qwen-engine", world.namespace)
        .spec.template.spec.containers[0]
        .image
    )
    body = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "other"}]
    world.apps.patch_namespaced_deployment("qwen-engine", world.namespace, body)
    world.until_object(
        "apps/v1",
        "Deployment",
        "qwen-engine",
        lambda live: live and live["spec"]["template"]["spec"]["containers"][0]["image"] == image,
    )
    old = world.find("v1", "ConfigMap", "qwen-picker")
    assert old
    world.core.delete_namespaced_config_map("qwen-picker", world.namespace)
    new = world.until_object(
        "v1",
        "ConfigMap",
        "qwen-picker",
        lambda live: live and live["metadata"]["uid"] != old["metadata"]["uid"],
    )
    assert new
    assert new["data"] == old["data"]


@pytest.mark.parametrize("name", ["qwen-engine", "qwen-picker"])
@pytest.mark.parametrize(
    ("field", "theirs"),
    [
        ("paused", True),
        ("minReadySeconds", 500),
        ("progressDeadlineSeconds", 4000),
        ("revisionHistoryLimit", 0),
    ],
)
def test_what_would_hold_up_a_rollout_is_put_back(
    world: World, name: str, field: str, theirs: object
) -> None:
    world.create(resource())
    world.until_settled()
    before = world.find("apps/v1", "Deployment", name)
    assert before
    world.apps.patch_namespaced_deployment(name, world.namespace, {"spec": {field: theirs}})
    after = world.until_object(
        "apps/v1",
        "Deployment",
        name,
        lambda live: live and live["metadata"]["generation"] > before["metadata"]["generation"] + 1,
    )
    assert after
    assert after["spec"] == before["spec"]


def test_what_others_add_to_the_pods_stays(world: World) -> None:
    world.create(resource())
    world.until_settled()
    toleration = {"key": "spot", "operator": "Exists"}
    added = {
        "nodeSelector": {"zone": "a"},
        "tolerations": [toleration],
        "containers": [{"name": "mesh", "image": "mesh"}],
    }
    world.apps.patch_namespaced_deployment(
        "qwen-engine", world.namespace, {"spec": {"template": {"spec": added}}}
    )
    world.change(replicas=3)
    world.until_settled()
    spec = world.children()["Deployment", "qwen-engine"]["spec"]
    assert spec["replicas"] == 3
    pod = spec["template"]["spec"]
    assert (pod["nodeSelector"], pod["tolerations"]) == ({"zone": "a"}, [toleration])
    assert {container["name"] for container in pod["containers"]} == {"engine", "mesh"}


def test_a_service_that_someone_widened_is_put_back(world: World) -> None:
    world.create(resource())
    world.until_settled()
    widened = {"publishNotReadyAddresses": True, "externalIPs": ["192.0.2.1"], "sessionAffinity": "ClientIP"}
    world.core.patch_namespaced_service("qwen-engine", world.namespace, {"spec": widened})
    world.until_object(
        "v1",
        "Service",
        "qwen-engine",
        lambda live: (
            live
            and not live["spec"].get("publishNotReadyAddresses")
            and not live["spec"].get("externalIPs")
            and live["spec"]["sessionAffinity"] == "None"
        ),
    )


@pytest.mark.parametrize(
    ("api_version", "kind", "name"),
    [
        ("v1", "ServiceAccount", "qwen-picker"),
        ("v1", "ConfigMap", "qwen-picker"),
        ("v1", "Service", "qwen-picker"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding", "qwen-picker"),
        ("apps/v1", "Deployment", "qwen-engine"),
    ],
)
def test_an_own_object_that_lost_its_label_is_repaired(
    world: World, api_version: str, kind: str, name: str
) -> None:
    world.create(resource())
    world.until_settled()
    before = world.find(api_version, kind, name)
    assert before
    world.patch(api_version, kind, name, {"metadata": {"labels": {MANAGED_BY_LABEL: None}}})
    repaired = world.until_object(
        api_version, kind, name, lambda live: live and live["metadata"]["labels"].get(MANAGED_BY_LABEL)
    )
    assert repaired
    for field in ("uid", "labels", "annotations", "ownerReferences"):
        assert repaired["metadata"][field] == before["metadata"][field]


@pytest.mark.parametrize(
    "labels", [{}, {"app.kubernetes.io/managed-by": "kvtier"}], ids=["plain", "with our label"]
)
def test_someone_elses_object_of_the_same_name_is_left_alone(world: World, labels: dict[str, str]) -> None:
    foreign = {"metadata": {"name": "qwen-picker", "labels": labels}, "data": {"theirs": "yes"}}
    world.core.create_namespaced_config_map(world.namespace, foreign)
    world.create(resource())
    said = world.until_condition("RouterReady", reason="NameTaken")["message"]
    assert "ConfigMap qwen-picker" in said
    for name in ("EnginesReady", "Ready"):  # the engines are not made either, and that is why
        assert "ConfigMap qwen-picker" in world.until_condition(name, reason="NameTaken")["message"]
    left = world.find("v1", "ConfigMap", "qwen-picker")
    assert left
    assert left["data"] == {"theirs": "yes"}
    assert "ownerReferences" not in left["metadata"]
    assert not world.children()  # nothing that would run with the wrong configuration
    world.core.delete_namespaced_config_map("qwen-picker", world.namespace)
    world.until_condition("RouterReady", reason="CRDsMissing")
    assert ("ConfigMap", "qwen-picker") in world.children()
