"""Pods as others write them: the policy makes of them what `kvtier attach` does, unseen by their owners."""

import copy
from collections.abc import Callable
from typing import Any, Final

import pytest
from kubernetes import client
from tests.cluster.attach.agreement import assert_agreement
from tests.cluster.attach.conftest import MakePlace
from tests.cluster.attach.place import Place, attached_to
from tests.cluster.attach.shapes import LABELS, SHAPES, TIERS, memory, pod, tier
from tests.shared.waiting import eventually

from kvtier_operator.api.quantity import parse_quantity
from kvtier_operator.planning.base.names import ATTACH_OPT_IN

Document = dict[str, Any]
_DEFAULTED: Final = {"type": "Container", "default": {"cpu": "2", "memory": "32Gi"}, "min": {"cpu": "100m"}}
_QUOTA: Final = {f"{kind}.{name}": "1Ti" for kind in ("requests", "limits") for name in ("cpu", "memory")}


@pytest.fixture(scope="module")
def with_tiers(make_place: MakePlace) -> Callable[[str], Place]:
    """Namespaces by the tiers that are published there, each made once."""
    places: dict[str, Place] = {}

    def place_of(tiers: str) -> Place:
        if tiers not in places:
            places[tiers] = make_place()
            places[tiers].publish(_tier(tiers))
            until_in_force(places[tiers])
        return places[tiers]

    return place_of


def until_in_force(place: Place) -> None:
    limited = pod(resources=memory("1Gi", "1Gi"))
    eventually(lambda: attached_to(place.create(limited, dry_run=True)), "effect of the policy")


def _tier(tiers: str) -> Document:
    return tier(tiers=TIERS[tiers], container=None)


@pytest.mark.parametrize("tiers", TIERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_policy_and_the_patch_agree(
    with_tiers: Callable[[str], Place], untouched: Place, shape: str, tiers: str
) -> None:
    assert_agreement((with_tiers(tiers), untouched), SHAPES[shape], _tier(tiers))


def test_defaults_of_the_namespace_come_first(make_place: MakePlace, policed: client.ApiClient) -> None:
    """A LimitRange's are raised as what is written is, and a quota finds everything that it counts."""
    places = make_place(), make_place(dict.fromkeys(ATTACH_OPT_IN, "disabled"))
    core = client.CoreV1Api(policed)
    for place in places:
        metadata = {"name": "team"}
        core.create_namespaced_limit_range(
            place.namespace, {"metadata": metadata, "spec": {"limits": [_DEFAULTED]}}
        )
        core.create_namespaced_resource_quota(
            place.namespace, {"metadata": metadata, "spec": {"hard": _QUOTA}}
        )
        eventually(lambda place=place: _counted(core, place), "a quota that counts")  # type: ignore[misc]
    places[0].publish(_tier("memory"))
    until_in_force(places[0])
    assert_agreement(places, pod(), _tier("memory"))
    [engine] = places[0].create(pod(), dry_run=True)["spec"]["containers"]
    assert parse_quantity(engine["resources"]["limits"]["memory"]) > 132 << 30


def _counted(core: client.CoreV1Api, place: Place) -> object:
    return core.read_namespaced_resource_quota("team", place.namespace).status.used


def test_a_restricted_namespace_admits_them(make_place: MakePlace) -> None:
    place = make_place({"pod-security.kubernetes.io/enforce": "restricted"})
    place.publish(_tier("memory"))
    until_in_force(place)
    for document in (pod(), SHAPES["sidecar first"]):
        assert attached_to(place.create(document))


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_owners_see_no_change(
    with_tiers: Callable[[str], Place], policed: client.ApiClient, kind: str
) -> None:
    place, apps = with_tiers("memory"), client.AppsV1Api(policed)
    template = copy.deepcopy(pod(resources=memory("8Gi", "8Gi")))
    template = {"metadata": {"labels": LABELS | {"kind": kind.lower()}}, "spec": template["spec"]}
    owner = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "chat"},
        "spec": {"selector": {"matchLabels": template["metadata"]["labels"]}, "template": template},
    }
    place.create(owner)
    chosen = {"label_selector": f"kind={kind.lower()}"}
    core = client.CoreV1Api(policed)
    [made] = eventually(
        lambda: core.list_namespaced_pod(place.namespace, **chosen).items, f"the pod of a {kind}"
    )
    assert attached_to(policed.sanitize_for_serialization(made)) == "chat"
    read = apps.read_namespaced_deployment if kind == "Deployment" else apps.read_namespaced_stateful_set
    live = read("chat", place.namespace)
    assert live.metadata.generation == 1
    assert live.spec.template.spec.init_containers is None
