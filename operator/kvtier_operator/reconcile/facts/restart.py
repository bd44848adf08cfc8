"""What the owner of a pod types to have it made anew: each kind of controller has its own way."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from kvtier_operator.api.formats import SUBDOMAIN
from kvtier_operator.reconcile.facts.pod_kind import (
    DEPLOYMENT,
    GROUP,
    LASTING,
    ROLLOUT,
    controller_of,
    revised_owner,
)

_OBJECT_NAME: Final = re.compile(rf"(?=.{{1,253}}\Z){SUBDOMAIN}")
"""The API server takes any text for an owner's name, and somebody is to type what is made of it."""
_REVISED: Final[Mapping[str, str]] = {
    DEPLOYMENT: "kubectl rollout restart -n {namespace} deployment/{name}",
    ROLLOUT: "kubectl argo rollouts restart -n {namespace} {name}",
}
_GROUP_REVISION: Final = "leaderworkerset.sigs.k8s.io/template-revision-hash"
_SETS_OF_GROUPS: Final = "disaggregatedset.x-k8s.io/"
"""Begins labels of pods whose LeaderWorkerSet is made by what takes back changes in it."""
_PART_OF: Final = "app.kubernetes.io/part-of"
_NAME: Final = "app.kubernetes.io/name"
_COMPONENT: Final = "app.kubernetes.io/component"
_LLM_SERVICE: Final = "llminferenceservice"
_REPLACED: Final = "kvtier.dev/replaced"
"""Annotation that pods get in place of those of another template: the name of that."""


def restart_command(metadata: Mapping[str, Any]) -> str:
    """What has a pod made anew, by its controller; a sentence where there is nothing to type."""
    namespace, labels = metadata["namespace"], metadata.get("labels") or {}
    owner = controller_of(metadata)
    if owner is None:
        return f"no controller makes pod {metadata['name']} anew: delete it and apply its manifest again"
    delete = f"kubectl delete pod -n {namespace} {metadata['name']}"
    kind, name = str(owner.get("kind")), str(owner.get("name"))
    if not _OBJECT_NAME.fullmatch(name):
        return delete
    if labels.get(_PART_OF) == _LLM_SERVICE:
        return _llm_service_restart(namespace, labels, str(labels.get("pod-template-hash") or name))
    if GROUP in labels:
        return _group_restart(namespace, labels) or delete
    if kind == "Job":
        return f"let Job {name} end, as its next run has the tier, or have it make another pod: {delete}"
    return _workload_restart(namespace, labels, kind, name) or delete


def _workload_restart(namespace: str, labels: Mapping[str, str], kind: str, name: str) -> str:
    """By a command that is made for it; empty where there is none."""
    if kind in LASTING:
        return f"kubectl rollout restart -n {namespace} {kind.lower()}/{name}"
    if revised := revised_owner(labels, kind, name):
        whose, owner_name = revised
        return _REVISED[whose].format(namespace=namespace, name=owner_name)
    return ""


def _llm_service_restart(namespace: str, labels: Mapping[str, str], template: str) -> str:
    """An annotation of the service's own, which reaches its pods; KServe takes others off its Deployments.

    Source: kserve v0.20.0, pkg/controller/v1alpha2/llmisvc, workload_single_node.go.
    """
    annotations: dict[str, Any] = {"annotations": {_REPLACED: template}}
    prefill = str(labels.get(_COMPONENT, "")).endswith("-prefill")
    spec = {"prefill": annotations} if prefill else annotations
    return _patch(namespace, f"{_LLM_SERVICE}/{labels.get(_NAME, '')}", spec)


def _group_restart(namespace: str, labels: Mapping[str, str]) -> str:
    """An annotation in the workers' template, any change of which is a rollout; empty where it is taken back.

    Source: sigs.k8s.io/lws v0.8.0, pkg/utils/revision.
    """
    group = str(labels[GROUP])
    if not _OBJECT_NAME.fullmatch(group) or any(name.startswith(_SETS_OF_GROUPS) for name in labels):
        return ""
    metadata = {"metadata": {"annotations": {_REPLACED: str(labels.get(_GROUP_REVISION, ""))}}}
    spec = {"leaderWorkerTemplate": {"workerTemplate": metadata}}
    return _patch(namespace, f"leaderworkerset/{group}", spec)


def _patch(namespace: str, what: str, spec: Mapping[str, Any]) -> str:
    patch = json.dumps({"spec": spec}, separators=(",", ":"))
    return f"kubectl patch -n {namespace} {what} --type merge -p '{patch}'"
