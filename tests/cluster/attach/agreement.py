"""A pod is the same by the policy and by the pure patch."""

from typing import Any, Final

from tests.cluster.attach.place import Place, attached_to, without_token
from tests.cluster.attach.shapes import planned

from kvtier_operator.api.quantity import parse_quantity
from kvtier_operator.planning.attach.delivery import Delivery
from kvtier_operator.planning.attach.left_alone import LeftAlone
from kvtier_operator.planning.attach.pod import attach_pod
from kvtier_operator.planning.base.names import ADDED
from kvtier_operator.planning.images import ImageSource

Document = dict[str, Any]
Places = tuple[Place, Place]
_IMAGE: Final = ImageSource().connector()


def assert_agreement(
    places: Places,
    document: Document,
    of_tier: Document,
    delivery: Delivery = Delivery.INIT_CONTAINER,
) -> None:
    """As one namespace has it, and as the other has what the patch makes of it."""
    made, as_written = (place.create(document, dry_run=True) for place in places)
    owned = {**document, "spec": without_token(as_written)}
    patched = attach_pod(planned(of_tier), owned, _IMAGE, delivery=delivery)
    if isinstance(patched, LeftAlone):
        assert not attached_to(made), patched
        patched = document
    by_hand = places[1].create(patched, dry_run=True)
    assert _comparable(made) == _comparable(by_hand)
    assert attached_to(made) == attached_to(by_hand)
    assert _added(made) == _added(by_hand)
    assert made["status"]["qosClass"] == as_written["status"]["qosClass"]


def _comparable(document: Document) -> Document:
    """A pod's spec with quantities as numbers, however they were written."""
    spec = without_token(document)
    for container in (*spec.get("initContainers", ()), *spec["containers"]):
        for kind in ("requests", "limits"):
            amounts = container.get("resources", {}).get(kind, {})
            container.setdefault("resources", {})[kind] = {
                name: parse_quantity(amount) for name, amount in amounts.items()
            }
    for volume in spec["volumes"]:
        for owner, name in ((volume.get("emptyDir") or {}, "sizeLimit"), (_claimed(volume), "storage")):
            if name in owner:
                owner[name] = parse_quantity(owner[name])
    return spec


def _claimed(volume: Document) -> Document:
    claim: Document = volume.get("ephemeral", {}).get("volumeClaimTemplate", {}).get("spec", {})
    requests: Document = claim.get("resources", {}).get("requests", {})
    return requests


def _added(document: Document) -> str:
    text: str = (document["metadata"].get("annotations") or {}).get(ADDED, "")
    return text
