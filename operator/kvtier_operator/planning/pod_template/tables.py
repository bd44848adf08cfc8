"""What a pod template may set, and why it may not set the rest.

Only what is listed: a field that Kubernetes gets later may give a pod a power that nobody thought of here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from posixpath import normpath
from typing import Any, Final, Self

from kvtier_operator.api.spec.pod import MOST_TOLERATIONS
from kvtier_operator.planning.objects.engine.volumes import HOME
from kvtier_operator.planning.pod_template.shape import (
    ANYTHING,
    BOOLEAN,
    LINES,
    LIST,
    MAPPING,
    NUMBER,
    Fields,
    Items,
    Shape,
    at_least,
    by_name,
    choice,
    list_of,
    quantity,
    text,
    text_except,
    word,
)

_OPEN_FOLDERS: Final = (HOME, "/tmp")  # noqa: S108 - a mount
"""Folders that hold nothing planned: a template may mount a cache of its own below them."""

# Who containers may run as: no more than Pod Security's level baseline lets them be. Source of the lists of
# values: k8s.io/pod-security-admission/policy.
_OF_THE_NODE: Final = "it gives the pod more of its node than the author of a pod template gets here"
_CONFINED: Final = "a container is confined here"
_PROFILE: Final = Fields(
    {"type": choice(("RuntimeDefault", "Localhost"), _CONFINED), "localhostProfile": text}
)
_SELINUX: Final = Fields(
    {
        "type": choice(
            ("container_t", "container_init_t", "container_kvm_t", "container_engine_t"), _CONFINED
        ),
        "level": text,
    },
    dict.fromkeys(("user", "role"), _OF_THE_NODE),
)
_CAPABILITIES: Final = choice(
    (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    ),
    _OF_THE_NODE,
)
_WHO: Final[Mapping[str, Shape]] = {
    "runAsUser": NUMBER,
    "runAsGroup": NUMBER,
    "runAsNonRoot": BOOLEAN,
    "seccompProfile": _PROFILE,
    "appArmorProfile": _PROFILE,
    "seLinuxOptions": _SELINUX,
}
_POD_SECURITY: Final = Fields(
    {
        **_WHO,
        "fsGroup": NUMBER,
        "fsGroupChangePolicy": text,
        "supplementalGroups": LIST,
        "supplementalGroupsPolicy": text,
        "seLinuxChangePolicy": text,
    },
    {"sysctls": _OF_THE_NODE, "windowsOptions": "engines and pickers run on Linux"},
    replaceable=True,
)
_CONTAINER_SECURITY: Final = Fields(
    {
        **_WHO,
        "allowPrivilegeEscalation": BOOLEAN,
        "readOnlyRootFilesystem": BOOLEAN,
        "capabilities": Fields({"add": list_of(_CAPABILITIES), "drop": LIST}),
    },
    dict.fromkeys(("privileged", "procMount"), _OF_THE_NODE),
    replaceable=True,
)

# Containers.
_IN_HUGE_PAGES: Final = "huge pages are asked for in spec.tiers.cpu.hugepages"
_IN_ROOTS: Final = "spec.tiers.cpu.memlock and a hostPath decide who the engine runs as"
_NO_HOST: Final = {"host": "the kubelet would ask it, from the node's network"}
_HTTP: Final = Fields(
    {"path": word, "port": ANYTHING, "scheme": word, "httpHeaders": list_of(MAPPING)}, _NO_HOST
)
_HANDLERS: Final[Mapping[str, Shape]] = {
    "exec": MAPPING,
    "httpGet": _HTTP,
    "tcpSocket": Fields({"port": ANYTHING}, _NO_HOST),
    "sleep": MAPPING,
}
_HANDLER: Final = Fields(_HANDLERS)
_PROBE: Final = Fields(
    {
        **_HANDLERS,
        "grpc": MAPPING,
        **dict.fromkeys(("initialDelaySeconds", "terminationGracePeriodSeconds"), NUMBER),
        # the API server writes its defaults in place of zeros
        **dict.fromkeys(("periodSeconds", "timeoutSeconds"), at_least(1)),
        **dict.fromkeys(("failureThreshold", "successThreshold"), at_least(1)),
    },
    replaceable=True,
)
_PROBES: Final = ("startupProbe", "readinessProbe", "livenessProbe")
_PORT: Final = Fields(
    {"name": text, "containerPort": NUMBER, "protocol": word},
    dict.fromkeys(("hostPort", "hostIP"), _OF_THE_NODE),
)
_MOUNT: Final = Fields(
    {
        **dict.fromkeys(("name", "mountPath", "subPath", "subPathExpr", "recursiveReadOnly"), text),
        "readOnly": BOOLEAN,
    },
    {"mountPropagation": _OF_THE_NODE},
    required=("name",),
)
_ENV: Final = Items("name", Fields({"name": text, "value": LINES, "valueFrom": MAPPING}))
_PORTS: Final = Items("containerPort", _PORT)
_AMOUNTS: Final = by_name(quantity, {"hugepages-": _IN_HUGE_PAGES})
_ADDED: Final = Fields(
    {
        **dict.fromkeys(("name", "workingDir"), text),
        **dict.fromkeys(("image", "imagePullPolicy", "restartPolicy"), word),
        **dict.fromkeys(("terminationMessagePath", "terminationMessagePolicy"), word),
        **dict.fromkeys(("args", "command"), LIST),
        **dict.fromkeys(_PROBES, _PROBE),
        "env": _ENV,
        "envFrom": list_of(MAPPING),
        "lifecycle": Fields({"postStart": _HANDLER, "preStop": _HANDLER, "stopSignal": text}),
        "ports": _PORTS,
        "resources": Fields(
            {"requests": _AMOUNTS, "limits": _AMOUNTS},
            {"claims": "spec.engine.resourceClaims gives claims to the engine"},
        ),
        "securityContext": _CONTAINER_SECURITY,
    },
    {"volumeDevices": _OF_THE_NODE},
    required=("image",),
)

# Volumes: the kinds that Pod Security's level restricted has, and images.
_CLAIM: Final = Fields(
    {
        **dict.fromkeys(("storageClassName", "volumeMode", "volumeAttributesClassName"), text),
        **dict.fromkeys(("selector", "dataSource", "dataSourceRef"), MAPPING),
        "accessModes": LIST,
        "resources": Fields(
            {"requests": by_name(quantity, required=("storage",)), "limits": by_name(quantity)},
            required=("requests",),
        ),
    },
    required=("resources",),
)
_CLAIM_TEMPLATE: Final = Fields({"metadata": MAPPING, "spec": _CLAIM}, required=("spec",))
_IN_MEMORY: Final = choice(("", "Memory"), _IN_HUGE_PAGES)
_VOLUME: Final = Fields(
    {
        "name": text,
        **dict.fromkeys(("configMap", "secret", "projected", "downwardAPI", "csi"), MAPPING),
        "emptyDir": Fields({"medium": _IN_MEMORY, "sizeLimit": ANYTHING}),
        "image": Fields({"reference": word, "pullPolicy": word}),
        "persistentVolumeClaim": Fields({"claimName": text, "readOnly": BOOLEAN}, required=("claimName",)),
        "ephemeral": Fields({"volumeClaimTemplate": _CLAIM_TEMPLATE}, required=("volumeClaimTemplate",)),
    },
    {
        "hostPath": "folders of the node are asked for in spec.tiers.disk.volume or spec.model.volume, for "
        "which there is a right"
    },
)
_VOLUMES: Final = Items("name", _VOLUME)

# The pod.
_OURS: Final = "kvtier's own, by which pods are found"
_LABELS: Final = by_name(
    text,
    {
        **{f"app.kubernetes.io/{name}": _OURS for name in ("name", "instance", "component")},
        **{f"app.kubernetes.io/{name}": _OURS for name in ("part-of", "managed-by")},
        "kvtier.dev/": _OURS,
    },
)
_ANNOTATIONS: Final = by_name(
    LINES,
    {
        "kvtier.dev/": "kvtier's own",
        "container.apparmor.security.beta.kubernetes.io/": "write securityContext.appArmorProfile",
        "seccomp.security.alpha.kubernetes.io/": "write securityContext.seccompProfile",
    },
)
_SPREAD: Final = Fields(
    {
        **dict.fromkeys(("topologyKey", "whenUnsatisfiable"), text),
        **dict.fromkeys(("nodeAffinityPolicy", "nodeTaintsPolicy"), text),
        **dict.fromkeys(("maxSkew", "minDomains"), NUMBER),
        "labelSelector": MAPPING,
        "matchLabelKeys": LIST,
    }
)
_NOT_OF_A_POD: Final = {
    **dict.fromkeys(("hostNetwork", "hostPID", "hostIPC"), _OF_THE_NODE),
    "hostUsers": "folders and locked memory are planned for the node's own users",
    "nodeName": "the scheduler chooses the node; narrow it down by nodeSelector or affinity",
    "enableServiceLinks": "a Service called vllm would set variables that vLLM reads",
    "terminationGracePeriodSeconds": "write spec.engine.drainSeconds",
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
    "resources": "kvtier derives them from spec.engine.resources and spec.tiers",
    "lifecycle": "write spec.engine.drainSeconds",
}
_PICKER_CONTAINER: Final = {
    "image": "write spec.router.image",
    "args": "kvtier derives them from spec.router",
    "command": "kvtier derives it from spec.router",
    "envFrom": "it would hide what kvtier plans; write each variable into env",
    "resources": "write spec.router.resources",
    "lifecycle": "write spec.engine.drainSeconds",
}
_GATEWAY_CONTAINER: Final = {
    "image": "write spec.router.gateway.standalone.image",
    "args": "kvtier derives them from spec.router.gateway",
    "command": "kvtier plans it",
    "envFrom": "it would hide what kvtier plans; write each variable into env",
    "resources": "write spec.router.gateway.standalone.resources",
    "lifecycle": "write spec.engine.drainSeconds",
}
_IN_THE_PICKERS: Final = dict.fromkeys(
    ("serviceAccountName", "automountServiceAccountToken"), "the picker's rights are bound to its own account"
)


@dataclass(frozen=True, slots=True)
class MountPaths:
    """Where kvtier mounts something: in it is each path at which another mount would hide that or a part.

    A path above hides nothing: container runtimes mount from the root down.
    """

    paths: tuple[str, ...]  # in their shortest form

    @classmethod
    def of(cls, container: Mapping[str, Any]) -> Self:
        """Those of a container."""
        return cls(tuple(_shortest(mount["mountPath"]) for mount in container.get("volumeMounts", ())))

    def __contains__(self, path: object) -> bool:
        place = _shortest(str(path))
        return any(
            place == own or (own not in _OPEN_FOLDERS and place.startswith(f"{own}/")) for own in self.paths
        )


def _shortest(path: str) -> str:
    """As the kubelet has it: a path without the first slash begins at the root as well."""
    return normpath(f"/{path.lstrip('/')}")


def _free_mounts(volumes: Iterable[Mapping[str, Any]]) -> Items:
    """Mounts of any volume but the node's folders, of which the engine may have some for reading alone."""
    folders = [volume["name"] for volume in volumes if "hostPath" in volume]
    name = text_except(folders, "a folder of the node is the engine's alone")
    return Items("mountPath", replace(_MOUNT, fields={**_MOUNT.fields, "name": name}))


def _added_container(mounts: Items, own: Iterable[object] = ()) -> Fields:
    """What a container may have that the template brings.

    One without an image may have been meant to be one of kvtier's, whose names are `own`.
    """
    fields: dict[str, Shape] = {**_ADDED.fields, "volumeMounts": mounts}
    names = " or ".join(map(str, own))
    absent = f"is required; kvtier's own is {names}" if names else _ADDED.absent
    return replace(_ADDED, fields=fields, absent=absent)


def _own_containers(
    containers: Iterable[Mapping[str, Any]], refused: Mapping[str, str], mounts: Items, *, root: bool = False
) -> dict[object, Fields]:
    """What may be changed of containers of kvtier's, and added to them, by their names.

    `refused` are fields that are planned, and where they are decided; `root`: the plan has them run as root.
    """
    why = {**refused, **({"securityContext": _IN_ROOTS} if root else {})}
    tables: dict[object, Fields] = {}
    for container in containers:
        fields: dict[str, Shape] = {
            "name": text,
            "imagePullPolicy": word,
            **dict.fromkeys(_PROBES, _PROBE),
            "env": _with_own(container, "env", _ENV),
            "ports": _with_own(container, "ports", _PORTS),
            "securityContext": _CONTAINER_SECURITY,
            "volumeMounts": replace(mounts, kept=MountPaths.of(container)),
        }
        tables[container["name"]] = Fields({k: shape for k, shape in fields.items() if k not in why}, why)
    return tables


def _with_own(there: Mapping[str, Any], name: str, items: Items) -> Items:
    """The list of this name, whose items that are there already stay as they are."""
    return replace(items, kept=[item[items.key] for item in there.get(name, ())])


def engine_table(pod: Mapping[str, Any], *, root: bool) -> Fields:
    """Of spec.engine.podTemplate; `pod` is the spec without it, and `root` whether it runs as root."""
    mounts, of_others = _free_mounts(pod["volumes"]), dict.fromkeys(_ENGINE_CONTAINER, "kvtier plans it")
    return _table(
        pod,
        mounts,
        _own_containers(pod["containers"], _ENGINE_CONTAINER, mounts, root=root),
        _own_containers(pod["initContainers"], of_others, mounts, root=root),
        {"securityContext": _IN_ROOTS} if root else {},
    )


def picker_table(pod: Mapping[str, Any]) -> Fields:
    """Of spec.router.podTemplate; `pod` is the spec of the picker's pod without it."""
    mounts = _free_mounts(pod["volumes"])
    own = _own_containers(pod["containers"], _PICKER_CONTAINER, mounts)
    return _table(pod, mounts, own, {}, _IN_THE_PICKERS)


def gateway_table(pod: Mapping[str, Any]) -> Fields:
    """Of spec.router.gateway.standalone.podTemplate; `pod` is the spec of an Envoy's pod without it."""
    mounts, of_others = _free_mounts(pod["volumes"]), dict.fromkeys(_GATEWAY_CONTAINER, "kvtier plans it")
    return _table(
        pod,
        mounts,
        _own_containers(pod["containers"], _GATEWAY_CONTAINER, mounts),
        _own_containers(pod.get("initContainers", ()), of_others, mounts),
        {},
    )


def _table(
    pod: Mapping[str, Any],
    mounts: Items,
    containers: Mapping[object, Fields],
    before: Mapping[object, Fields],
    refused: Mapping[str, str],
) -> Fields:
    fields: dict[str, Shape] = {
        **dict.fromkeys(("dnsPolicy", "schedulerName"), word),
        **dict.fromkeys(("priorityClassName", "runtimeClassName", "serviceAccountName"), text),
        **dict.fromkeys(("automountServiceAccountToken", "shareProcessNamespace"), BOOLEAN),
        "affinity": Fields(
            dict.fromkeys(("nodeAffinity", "podAffinity", "podAntiAffinity"), MAPPING), replaceable=True
        ),
        # the names of both kinds are those of one pod
        "containers": Items("name", _added_container(mounts, containers), containers, kept=before),
        "dnsConfig": MAPPING,
        "hostAliases": Items("ip", Fields({"ip": text, "hostnames": LIST})),
        "imagePullSecrets": Items("name", Fields({"name": text})),
        "initContainers": Items("name", _added_container(mounts, before), before, kept=containers),
        "nodeSelector": by_name(text),
        "readinessGates": list_of(MAPPING),
        "schedulingGates": Items("name", Fields({"name": text})),
        "securityContext": _POD_SECURITY,
        "tolerations": list_of(MAPPING, MOST_TOLERATIONS),
        "topologySpreadConstraints": Items("topologyKey", _SPREAD),
        "volumes": _with_own(pod, "volumes", _VOLUMES),
    }
    spec = Fields(
        {name: shape for name, shape in fields.items() if name not in refused}, {**_NOT_OF_A_POD, **refused}
    )
    return Fields({"metadata": Fields({"labels": _LABELS, "annotations": _ANNOTATIONS}), "spec": spec})
