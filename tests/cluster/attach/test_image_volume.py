"""The payload as a volume of its image: the policy and the patch agree there, too."""

from collections.abc import Iterator

import pytest
from kubernetes import client
from tests.cluster.attach.agreement import Places, assert_agreement
from tests.cluster.attach.conftest import MakePlace
from tests.cluster.attach.place import Document, Place, attached_to, replaced_policy
from tests.cluster.attach.shapes import SHAPES, TIERS, memory, pod, tier
from tests.shared.waiting import eventually

from kvtier_connector.payload import VOLUME_NAME
from kvtier_operator.planning.attach.delivery import Delivery

_TIER = tier(tiers=TIERS["disk of the node"], container=None)


@pytest.fixture(scope="module")
def places(make_place: MakePlace, untouched: Place, policed: client.ApiClient) -> Iterator[Places]:
    """With the tier, and without."""
    place = make_place({"pod-security.kubernetes.io/enforce": "restricted"})
    with replaced_policy(policed, Delivery.IMAGE_VOLUME):
        place.publish(_TIER)
        eventually(lambda: _is_mounted(place.create(pod(), dry_run=True)), "effect of the policy")
        yield place, untouched
    eventually(lambda: not _is_mounted(place.create(pod(), dry_run=True)), "effect of the policy as it was")


def _is_mounted(document: Document) -> bool:
    volumes = document["spec"].get("volumes", ())
    return any(volume["name"] == VOLUME_NAME and volume.get("image") for volume in volumes)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_policy_and_the_patch_agree(places: Places, shape: str) -> None:
    assert_agreement(places, SHAPES[shape], _TIER, Delivery.IMAGE_VOLUME)


def test_a_restricted_namespace_admits_it(places: Places) -> None:
    made = places[0].create(pod(resources=memory("8Gi", "8Gi")))
    assert attached_to(made) == "chat"
    assert "initContainers" not in made["spec"]
