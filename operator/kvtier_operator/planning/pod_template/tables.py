"""What a pod template may set, and why it may not set the rest.

Only what is listed: a field that Kubernetes gets later may give a pod a power that nobody thought of here.
"""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_operator.api.spec.pod import MOST_TOLERATIONS
from kvtier_operator.planning.pod_template.containers import (
    IN_ROOTS,
    added_container,
    free_mounts,
    kept,
    own_container,
)
from kvtier_operator.planning.pod_template.security import OF_THE_NODE, POD_SECURITY
from kvtier_operator.planning.pod_template.shape import (
    BOOLEAN,
    LINES,
    LIST,
    MAPPING,
    NUMBER,
    TEXT,
    WORD,
    Fields,
    Items,
    ListOf,
    Shape,
    Texts,
)
from kvtier_operator.planning.pod_template.volumes import VOLUMES

_OURS: Final = "kvtier's own, by which pods are found"
_LABELS: Final = Texts(
    {
        **{f"app.kubernetes.io/{name}": _OURS for name in ("name", "instance", "component")},
        **{f"app.kubernetes.io/{name}": _OURS for name in ("part-of", "managed-by")},
        "kvtier.dev/": _OURS,
    }
)
_ANNOTATIONS: Final = Texts(
    {
        "kvtier.dev/": "kvtier's own",
        "container.apparmor.security.beta.kubernetes.io/": "write securityContext.appArmorProfile",
        "seccomp.security.alpha.kubernetes.io/": "write securityContext.seccompProfile",
    },
    LINES,
)
_SPREAD: Final = Fields(
    {
        **dict.fromkeys(("topologyKey", "whenUnsatisfiable"), TEXT),
        **dict.fromkeys(("nodeAffinityPolicy", "nodeTaintsPolicy"), TEXT),
        **dict.fromkeys(("maxSkew", "minDomains"), NUMBER),
        "labelSelector": MAPPING,
        "matchLabelKeys": LIST,
    }
)
_NOT_OF_A_POD: Final = {
    **dict.fromkeys(("hostNetwork", "hostPID", "hostIPC"), OF_THE_NODE),
    "hostUsers": "folders and locked memory are planned for the node's own users",
    "nodeName": "the scheduler chooses the node; narrow it down by nodeSelector or affinity",
    "enableServiceLinks": "a Service called vllm would set variables that vLLM reads",
    "terminationGracePeriodSeconds": "spec.engine.drainSeconds makes it",
    "restartPolicy": "a Deployment's pods have Always alone",
    "resources": "kvtier plans what each container needs",
    "resourceClaims": "write spec.engine.resourceClaims",
}
_ENGINE_CONTAINER: Final = {
    "image": "write spec.engine.image",
    "args": "write spec.engine.extraArgs",
    "command": "kvtier plans it; arguments go into spec.engine.extraArgs",
    "env": "write spec.engine.env",
    "envFrom": "it would hide what kvtier plans; write each variable into spec.engine.env",
    "resources": "spec.engine.resources and spec.tiers make them",
    "lifecycle": "spec.engine.drainSeconds makes it",
}
_PICKER_CONTAINER: Final = {
    "image": "write spec.router.image",
    "args": "spec.router makes them",
    "command": "spec.router makes it",
    "envFrom": "it would hide what kvtier plans; write each variable into env",
    "resources": "write spec.router.resources",
    "lifecycle": "spec.engine.drainSeconds makes it",
}
_IN_THE_PICKERS: Final = dict.fromkeys(
    ("serviceAccountName", "automountServiceAccountToken"), "the picker's rights are bound to its own account"
)


def engine_table(pod: Mapping[str, Any], *, root: bool) -> Fields:
    """Of spec.engine.podTemplate.

    Args:
        pod: Spec of the engine's pod without it.
        root: Whether the plan has the engine run as root.
    """
    of_others, taken = dict.fromkeys(_ENGINE_CONTAINER, "kvtier plans it"), free_mounts(pod["volumes"])
    return _table(
        pod,
        taken,
        {
            each["name"]: own_container(each, _ENGINE_CONTAINER, taken, root=root)
            for each in pod["containers"]
        },
        {each["name"]: own_container(each, of_others, taken, root=root) for each in pod["initContainers"]},
        {"securityContext": IN_ROOTS} if root else {},
    )


def picker_table(pod: Mapping[str, Any]) -> Fields:
    """Of spec.router.podTemplate; `pod` is the spec of the picker's pod without it."""
    taken = free_mounts(pod["volumes"])
    own = {each["name"]: own_container(each, _PICKER_CONTAINER, taken) for each in pod["containers"]}
    return _table(pod, taken, own, {}, _IN_THE_PICKERS)


def _table(
    built: Mapping[str, Any],
    mounts: Items,
    containers: Mapping[object, Fields],
    before: Mapping[object, Fields],
    refused: Mapping[str, str],
) -> Fields:
    taken: dict[str, Shape] = {
        **dict.fromkeys(("dnsPolicy", "schedulerName"), WORD),
        **dict.fromkeys(("priorityClassName", "runtimeClassName", "serviceAccountName"), TEXT),
        **dict.fromkeys(("automountServiceAccountToken", "shareProcessNamespace"), BOOLEAN),
        "affinity": Fields(
            dict.fromkeys(("nodeAffinity", "podAffinity", "podAntiAffinity"), MAPPING),
            replaceable=True,
        ),
        # the names of both kinds are those of one pod
        "containers": Items("name", added_container(mounts, containers), containers, kept=before),
        "dnsConfig": MAPPING,
        "hostAliases": Items("ip", Fields({"ip": TEXT, "hostnames": LIST})),
        "imagePullSecrets": Items("name", Fields({"name": TEXT})),
        "initContainers": Items("name", added_container(mounts, before), before, kept=containers),
        "nodeSelector": Texts(),
        "readinessGates": ListOf(MAPPING),
        "schedulingGates": Items("name", Fields({"name": TEXT})),
        "securityContext": POD_SECURITY,
        "tolerations": ListOf(MAPPING, MOST_TOLERATIONS),
        "topologySpreadConstraints": Items("topologyKey", _SPREAD),
        "volumes": kept(built, "volumes", VOLUMES),
    }
    pod = Fields(
        {name: shape for name, shape in taken.items() if name not in refused}, {**_NOT_OF_A_POD, **refused}
    )
    return Fields({"metadata": Fields({"labels": _LABELS, "annotations": _ANNOTATIONS}), "spec": pod})
