"""Which container of a pod vLLM runs in, and what keeps a pod from being changed at all."""

import re
from collections.abc import Mapping
from typing import Any, Final

from kvtier_connector.payload import ATTACH_VARIABLE, CACHE_PATH, INIT_NAME, PAYLOAD_PATH, VOLUME_NAME
from kvtier_operator.planning.attach.delivery import CACHE_NAME
from kvtier_operator.planning.attach.left_alone import LeftAloneError, Reason
from kvtier_operator.planning.attach.plan import AttachPlan
from kvtier_operator.planning.base.label_selector import mapping, mappings
from kvtier_operator.planning.base.names import ATTACHED

MIRROR: Final = "kubernetes.io/config.mirror"
"""Annotation of a pod that a kubelet runs already."""
KUEUE: Final = "kueue.x-k8s.io/"
AMD_GPU: Final = "amd.com/gpu"
GPUS: Final = ("nvidia.com/gpu", AMD_GPU)
_OS_LABEL: Final = "kubernetes.io/os"
_WINDOWS: Final = "windows"
_OFFLINE: Final = "put the patch of `kvtier attach` into what its owner applies"


def require_changeable(pod: Mapping[str, Any], *, before_queue: bool = False) -> None:
    """Leave pods alone that somebody else decides about, or changed before (LeftAloneError).

    Those of a queue, or held by scheduling gates, are not left alone `before_queue`.
    """
    metadata, spec = mapping(pod.get("metadata")), mapping(pod.get("spec"))
    annotations = mapping(metadata.get("annotations"))
    if ATTACHED in annotations:
        raise LeftAloneError(
            Reason.ALREADY_ATTACHED, f"it has the tiers of KVCacheTier {annotations[ATTACHED]} already"
        )
    if MIRROR in annotations:
        raise LeftAloneError(Reason.MIRROR_POD, "a kubelet runs it from a file of its own")
    if not before_queue:
        _require_not_held(metadata, spec)
    systems = (mapping(spec.get("os")).get("name"), mapping(spec.get("nodeSelector")).get(_OS_LABEL))
    if _WINDOWS in systems:
        raise LeftAloneError(Reason.WINDOWS, "it is a pod for Windows, on which vLLM does not run")
    if spec.get("resources"):
        raise LeftAloneError(
            Reason.POD_RESOURCES,
            "it asks for memory as a whole (spec.resources), into which a container's tier has to fit: "
            "write the memory into its containers",
        )


def _require_not_held(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
    if any(str(name).startswith(KUEUE) for name in mapping(metadata.get("labels"))):
        raise LeftAloneError(
            Reason.QUEUED, f"Kueue reserves what its owner's template asks for, before it is made: {_OFFLINE}"
        )
    if spec.get("schedulingGates"):
        raise LeftAloneError(
            Reason.SCHEDULING_GATED,
            f"who put its scheduling gates reckons with what it asks for: {_OFFLINE}",
        )


def engine_index(spec: Mapping[str, Any], name: str | None) -> int:
    """Index of the container that vLLM runs in.

    Args:
        spec: The pod's.
        name: As `spec.attach.container` has it; None for the only one, or the only one with a GPU.

    Raises:
        LeftAloneError: There is none, or it is not clear which.
    """
    containers = [*mappings(spec.get("containers"))]
    if len(containers) != len(spec.get("containers") or ()):
        raise LeftAloneError(Reason.NOT_UNDERSTOOD, "spec.containers: not a list of containers")
    if name is not None:
        places = [place for place, container in enumerate(containers) if container.get("name") == name]
        if len(places) != 1:
            others = ", ".join(str(container.get("name")) for container in containers)
            raise LeftAloneError(
                Reason.CONTAINER_NOT_FOUND, f"it has no container {name}; it has {others or 'none'}"
            )
        return places[0]
    if len(containers) == 1:
        return 0
    places = [place for place, container in enumerate(containers) if _has_gpu(container)]
    if len(places) != 1:
        which = "several of its containers have a GPU" if places else "none of its containers has a GPU"
        raise LeftAloneError(
            Reason.CONTAINER_NOT_CLEAR, f"{which}: name the one that vLLM runs in, in spec.attach.container"
        )
    return places[0]


def _has_gpu(container: Mapping[str, Any]) -> bool:
    limits = mapping(mapping(container.get("resources")).get("limits"))
    return any(str(limits.get(gpu, "0")) != "0" for gpu in GPUS)


def spellings(path: str) -> str:
    """For Python and CEL: all that a container runtime takes for an absolute path without `..`."""
    return f"^/*([.]/+)*{'/+([.]/+)*'.join(path.strip('/').split('/'))}(/+[.]?)*$"


def require_free_names(plan: AttachPlan, spec: Mapping[str, Any], engine: Mapping[str, Any]) -> None:
    """Leave pods alone that use a name, a path or the variable which the tiers come with (LeftAloneError)."""
    volumes = {VOLUME_NAME, CACHE_NAME, *([plan.disk.name] if plan.disk else [])}
    containers = {INIT_NAME}
    for field, taken in (("volumes", volumes), ("initContainers", containers), ("containers", containers)):
        names = {str(item.get("name")) for item in mappings(spec.get(field))}
        if both := sorted(names & taken):
            raise LeftAloneError(Reason.NAME_TAKEN, f"spec.{field} has a {both[0]} of its own")
    theirs = [
        str(item.get(path))
        for field, path in (("volumeMounts", "mountPath"), ("volumeDevices", "devicePath"))
        for item in mappings(engine.get(field))
    ]
    for ours in (PAYLOAD_PATH, CACHE_PATH, *([plan.disk.mount_path] if plan.disk else [])):
        if any(re.search(spellings(ours), path) for path in theirs):
            raise LeftAloneError(Reason.PATH_TAKEN, f"its container has a volume at {ours}")
    if any(item.get("name") == ATTACH_VARIABLE for item in mappings(engine.get("env"))):
        raise LeftAloneError(Reason.OWN_SETTINGS, f"its container has a variable {ATTACH_VARIABLE} already")
