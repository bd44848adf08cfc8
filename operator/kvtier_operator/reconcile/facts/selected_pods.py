"""What a pod that a KVCacheTier selects says: whether it has the tier, who owns it, what holds it up."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvtier_common.one_line import one_line
from kvtier_connector.payload import INIT_NAME
from kvtier_operator.api.formats import SUBDOMAIN
from kvtier_operator.api.resource import MAX_NAME_LENGTH
from kvtier_operator.planning.base.names import ATTACHED
from kvtier_operator.reconcile.facts.engine_place import engine_place

_MOST_CHARACTERS: Final = 300
_STARTING: Final = frozenset({"", "PodInitializing", "ContainerCreating", "ErrImagePull"})
"""Reasons of waiting; after a failed pull a kubelet tries again, and then says ImagePullBackOff."""
_GROWN: Final = ("Insufficient memory", "Insufficient hugepages-", "Insufficient ephemeral-storage")
"""What a scheduler says of what the tier takes more of (k8s.io/kubernetes, noderesources/fit.go)."""
_OBJECT_NAME: Final = re.compile(rf"(?=.{{1,253}}\Z){SUBDOMAIN}")
"""The API server takes any text for an owner's name, and somebody is to type what is made of it."""
_HASH: Final = "pod-template-hash"
_RESTARTED: Final = frozenset({"StatefulSet", "DaemonSet"})
_GROUP: Final = "leaderworkerset.sigs.k8s.io/name"
"""Label of pods of a LeaderWorkerSet, which makes StatefulSets and takes back what is changed in them."""
_PART_OF: Final = "app.kubernetes.io/part-of"
_NAME: Final = "app.kubernetes.io/name"
_COMPONENT: Final = "app.kubernetes.io/component"
_LLM_SERVICE: Final = "llminferenceservice"
_REPLACED: Final = "kvtier.dev/replaced"
"""Annotation that a service's pods get in place of those of another template: the name of that."""


@dataclass(frozen=True, slots=True)
class SelectedPod:
    """One pod."""

    name: str
    attached_to: str = ""  # the KVCacheTier whose tier it was given; empty where it was left as it is
    restart: str = ""  # what its owner types to have it made anew
    # why no node takes it, where that may be for what the tier added, and since when (RFC 3339); empty else
    unschedulable: str = ""
    unschedulable_since: str = ""
    payload: str = ""  # why its payload does not come; empty where nothing is known against it
    # of one that was given the tier: which start of its engine this is, empty before the first, and where its
    # metrics are asked for, empty while it is not ready
    engine_start: str = ""
    address: str = ""


def selected_pod(pod: Mapping[str, Any]) -> SelectedPod:
    """Reads a v1 Pod as the API server has it."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    unschedulable, since = _unschedulable(status)
    attached_to = one_line((metadata.get("annotations") or {}).get(ATTACHED, ""), MAX_NAME_LENGTH)
    place = engine_place(pod) if attached_to else None
    return SelectedPod(
        name=metadata["name"],
        attached_to=attached_to,
        restart=restart_command(metadata),
        unschedulable=unschedulable,
        unschedulable_since=since,
        payload=_payload_trouble(status),
        engine_start=_start(status, place.container) if place else "",
        address=place.address_in(status) if place else "",
    )


def restart_command(metadata: Mapping[str, Any]) -> str:
    """What has a pod made anew, by its controller; for one without a controller there is nothing to type."""
    namespace, labels = metadata["namespace"], metadata.get("labels") or {}
    owner = next((owner for owner in metadata.get("ownerReferences") or () if owner.get("controller")), None)
    if owner is None:
        return ""
    kind, name, template = str(owner.get("kind")), str(owner.get("name")), str(labels.get(_HASH, ""))
    if not _OBJECT_NAME.fullmatch(name):
        return f"kubectl delete pod -n {namespace} {metadata['name']}"
    if labels.get(_PART_OF) == _LLM_SERVICE:
        return _llm_service_restart(namespace, labels, template or name)
    if _GROUP not in labels and kind == "ReplicaSet" and template and name.endswith(f"-{template}"):
        return f"kubectl rollout restart -n {namespace} deployment/{name.removesuffix(f'-{template}')}"
    if _GROUP not in labels and kind in _RESTARTED:
        return f"kubectl rollout restart -n {namespace} {kind.lower()}/{name}"
    return f"kubectl delete pod -n {namespace} {metadata['name']}"


def _llm_service_restart(namespace: str, labels: Mapping[str, str], template: str) -> str:
    """An annotation of the service's own, which reaches its pods; KServe takes others off its Deployments.

    Source: kserve v0.20.0, pkg/controller/v1alpha2/llmisvc, workload_single_node.go.
    """
    annotations: dict[str, Any] = {"annotations": {_REPLACED: template}}
    prefill = str(labels.get(_COMPONENT, "")).endswith("-prefill")
    patch = json.dumps({"spec": {"prefill": annotations} if prefill else annotations}, separators=(",", ":"))
    service = f"{_LLM_SERVICE}/{labels.get(_NAME, '')}"
    return f"kubectl patch -n {namespace} {service} --type merge -p '{patch}'"


def _unschedulable(status: Mapping[str, Any]) -> tuple[str, str]:
    for condition in status.get("conditions") or ():
        message = condition.get("message") or ""
        if (condition.get("type"), condition.get("status")) == ("PodScheduled", "False") and any(
            grown in message for grown in _GROWN
        ):
            return one_line(message, _MOST_CHARACTERS), condition.get("lastTransitionTime") or ""
    return "", ""


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
