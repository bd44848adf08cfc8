"""Which pods are alike: those of one owner that a person knows, or whose containers are the same."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import orjson

from kvtier_common.one_line import one_line
from kvtier_operator.planning.attach.as_owned import as_owned

DEPLOYMENT: Final = "deployment"
ROLLOUT: Final = "rollout"
"""Argo's."""
_REVISIONS: Final[Mapping[str, str]] = {
    "pod-template-hash": DEPLOYMENT,
    "rollouts-pod-template-hash": ROLLOUT,
}
"""Who has a ReplicaSet for each revision, by the label that says which."""
GROUP: Final = "leaderworkerset.sigs.k8s.io/name"
"""Label of pods of a LeaderWorkerSet, which makes StatefulSets and takes back what is changed in them."""
_WORKER: Final = "leaderworkerset.sigs.k8s.io/worker-index"
LASTING: Final = frozenset({"StatefulSet", "DaemonSet"})
"""Kinds that own their pods themselves, whatever the revision."""
_SHAPE: Final = ("name", "image", "command", "args", "resources")
_MOST_CHARACTERS: Final = 300
_SHAPED: Final = "#"


def pod_kind(pod: Mapping[str, Any]) -> str:
    """Such as `deployment/chat`: its pods come of one template, or of the next revision of that.

    Other owners come and go with their pods, and pods may have none: there the containers decide.
    """
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    owner = controller_of(metadata) or {}
    kind, name = str(owner.get("kind")), str(owner.get("name"))
    if GROUP in labels:
        role = "leaders" if labels.get(_WORKER, "0") == "0" else "workers"
        return f"{role} of leaderworkerset/{labels[GROUP]}"
    if revised := revised_owner(labels, kind, name):
        return one_line("/".join(revised), _MOST_CHARACTERS)
    if kind in LASTING:
        return one_line(f"{kind.lower()}/{name}", _MOST_CHARACTERS)
    containers = as_owned(pod)["spec"]["containers"]
    shapes = [{field: container.get(field) for field in _SHAPE} for container in containers]
    return _SHAPED + hashlib.sha256(orjson.dumps(shapes, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def controller_of(metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The reference to an object's controller; None where it has none."""
    references = metadata.get("ownerReferences") or ()
    return next((reference for reference in references if reference.get("controller")), None)


def revised_owner(labels: Mapping[str, str], kind: str, name: str) -> tuple[str, str] | None:
    """Who owns a pod's ReplicaSet: DEPLOYMENT or ROLLOUT, and its name; None for other controllers."""
    for label, whose in _REVISIONS.items():
        end = f"-{labels.get(label, '')}"
        if kind == "ReplicaSet" and len(end) > 1 and name.endswith(end):
            return whose, name.removesuffix(end)
    return None


def kind_name(kind: str, pod: str) -> str:
    """For people: who owns the pods of a kind, or one of them by its name."""
    return f"pod {pod}" if kind.startswith(_SHAPED) else kind
