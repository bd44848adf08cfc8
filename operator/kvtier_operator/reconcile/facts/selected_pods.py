"""What a pod that a KVCacheTier selects says: whether it has the tier, who owns it, what holds it up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from sys import intern
from typing import Any, Final

from kvtier_common.one_line import one_line
from kvtier_connector.payload import INIT_NAME, VOLUME_NAME
from kvtier_operator.api.resource import MAX_NAME_LENGTH
from kvtier_operator.planning.attach.plan import settings_digest
from kvtier_operator.planning.backends import parts
from kvtier_operator.planning.base.names import ADDED, ATTACHED
from kvtier_operator.reconcile.facts.metrics_endpoint import metrics_endpoint
from kvtier_operator.reconcile.facts.pod_kind import pod_kind
from kvtier_operator.reconcile.facts.restart import restart_command

_MOST_CHARACTERS: Final = 300
_STARTING: Final = frozenset({"", "PodInitializing", "ContainerCreating", "ErrImagePull"})
"""Reasons of waiting; after a failed pull a kubelet tries again, and then says ImagePullBackOff."""
_GROWN: Final = ("Insufficient memory", "Insufficient hugepages-", "Insufficient ephemeral-storage")
"""What a scheduler says of what the tier takes more of (k8s.io/kubernetes, noderesources/fit.go)."""
_CLAIMED: Final = (
    "unbound immediate PersistentVolumeClaims",
    "didn't find available persistent volumes to bind",
    "did not have enough free storage",
    "ephemeral volume controller",
    "binding volumes",
)
"""What it says of a pod that waits for its claims (k8s.io/kubernetes, plugins/volumebinding)."""

_NO_IMAGE_VOLUMES: Final = (
    "the API server took its volume out, as the feature gate ImageVolume is off: turn it on, or use "
    "attach.payload init-container"
)


@dataclass(frozen=True, slots=True)
class SelectedPod:
    """One pod."""

    name: str
    created_at: str = ""  # RFC 3339 in UTC
    kind: str = ""  # the same of pods that are alike
    bound_at: str = ""  # when a node took it; empty before
    attached_to: str = ""  # the KVCacheTier whose tier it was given; empty where it was left as it is
    restart: str = ""  # what its owner types to have it made anew
    # why no node takes it, where that may be for what the tier added, and since when (RFC 3339); empty else
    unschedulable: str = ""
    unschedulable_since: str = ""
    payload: str = ""  # why its payload does not come; empty where nothing is known against it
    # of one that was given the tier: digest of the settings that it was given, which start of its engine this
    # is, empty before the first, and where its metrics are asked for, empty while it is not ready
    settings: str = ""
    engine_start: str = ""
    address: str = ""


def selected_pod(pod: Mapping[str, Any]) -> SelectedPod:
    """Reads a v1 Pod as the API server has it."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    unschedulable, since = _unschedulable(status, _GROWN + (_CLAIMED if _has_claim(pod) else ()))
    attached_to = one_line((metadata.get("annotations") or {}).get(ATTACHED, ""), MAX_NAME_LENGTH)
    endpoint = metrics_endpoint(pod) if attached_to else None
    return SelectedPod(
        name=metadata["name"],
        created_at=metadata.get("creationTimestamp") or "",
        kind=intern(pod_kind(pod)),
        bound_at=_bound_at(status),
        attached_to=attached_to,
        restart=restart_command(metadata),
        unschedulable=unschedulable,
        unschedulable_since=since,
        payload=_payload_trouble(status) or _volume_trouble(pod, status),
        settings=settings_digest(endpoint.settings) if endpoint else "",
        engine_start=_start(status, endpoint.container) if endpoint else "",
        address=endpoint.address_in(status) if endpoint else "",
    )


def _has_claim(pod: Mapping[str, Any]) -> bool:
    """Whether it has the disk tier by a claim that is made with it."""
    volumes = pod["spec"].get("volumes") or ()
    return any(volume.get("name") == f"{parts.VOLUME_NAME}-0" and "ephemeral" in volume for volume in volumes)


def _unschedulable(status: Mapping[str, Any], for_the_tier: Sequence[str]) -> tuple[str, str]:
    for condition in status.get("conditions") or ():
        message = condition.get("message") or ""
        if (condition.get("type"), condition.get("status")) == ("PodScheduled", "False") and any(
            cause in message for cause in for_the_tier
        ):
            return one_line(message, _MOST_CHARACTERS), condition.get("lastTransitionTime") or ""
    return "", ""


def _bound_at(status: Mapping[str, Any]) -> str:
    for condition in status.get("conditions") or ():
        if (condition.get("type"), condition.get("status")) == ("PodScheduled", "True"):
            return condition.get("lastTransitionTime") or ""
    return ""


def _start(status: Mapping[str, Any], container: str) -> str:
    """What its runtime calls this start of a container."""
    states = status.get("containerStatuses") or ()
    started = (state.get("containerID") or "" for state in states if state.get("name") == container)
    return next(started, "")


def _payload_trouble(status: Mapping[str, Any]) -> str:
    for container in status.get("initContainerStatuses") or ():
        if container.get("name") != INIT_NAME:
            continue
        state = container.get("state") or {}
        waiting = state.get("waiting") or {}
        ended = state.get("terminated") or (container.get("lastState") or {}).get("terminated") or {}
        if waiting.get("reason", "") not in _STARTING:
            return one_line(f"{waiting['reason']}: {waiting.get('message') or ''}", _MOST_CHARACTERS)
        if ended.get("exitCode"):
            return one_line(f"exit code {ended['exitCode']}: {ended.get('message') or ''}", _MOST_CHARACTERS)
    return ""


def _volume_trouble(pod: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    """Why a payload that is an image's volume does not come: it was taken out, or a container waits for it.

    Source: k8s.io/kubernetes v1.34.4, pkg/api/pod, dropImageVolumes; pkg/kubelet/kuberuntime,
    toKubeContainerImageVolumes: an image volume's trouble is the reason of the containers that mount it.
    """
    if ADDED not in (pod["metadata"].get("annotations") or {}):
        return ""
    volumes = (volume for volume in pod["spec"].get("volumes") or () if volume.get("name") == VOLUME_NAME)
    image = next((volume["image"].get("reference") or "" for volume in volumes if volume.get("image")), "")
    if not image:
        return _NO_IMAGE_VOLUMES
    for container in status.get("containerStatuses") or ():
        waiting = (container.get("state") or {}).get("waiting") or {}
        message = waiting.get("message") or ""
        if image in message and waiting.get("reason", "") not in _STARTING:
            return one_line(f"{waiting['reason']}: {message}", _MOST_CHARACTERS)
    return ""
