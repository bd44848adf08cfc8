"""What a pod template may set of its own containers, and of kvtier's."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from kvtier_operator.planning.pod_template.mount_paths import MountPaths
from kvtier_operator.planning.pod_template.security import CONTAINER_SECURITY, OF_THE_NODE
from kvtier_operator.planning.pod_template.shape import (
    ANYTHING,
    BOOLEAN,
    LINES,
    LIST,
    MAPPING,
    NUMBER,
    TEXT,
    WORD,
    AtLeast,
    Except,
    Fields,
    Items,
    ListOf,
    Quantities,
    Shape,
)

IN_HUGE_PAGES: Final = "huge pages are asked for in spec.tiers.cpu.hugepages"
IN_ROOTS: Final = "spec.tiers.cpu.memlock and a hostPath decide who the engine runs as"
_NO_HOST: Final = {"host": "the kubelet would ask it, from the node's network"}
_HTTP: Final = Fields(
    {"path": WORD, "port": ANYTHING, "scheme": WORD, "httpHeaders": ListOf(MAPPING)}, _NO_HOST
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
        **dict.fromkeys(("periodSeconds", "timeoutSeconds"), AtLeast(1)),
        **dict.fromkeys(("failureThreshold", "successThreshold"), AtLeast(1)),
    },
    replaceable=True,
)
_PROBES: Final = ("startupProbe", "readinessProbe", "livenessProbe")
_PORT: Final = Fields(
    {"name": TEXT, "containerPort": NUMBER, "protocol": WORD},
    dict.fromkeys(("hostPort", "hostIP"), OF_THE_NODE),
)
_MOUNT: Final = Fields(
    {
        **dict.fromkeys(("name", "mountPath", "subPath", "subPathExpr", "recursiveReadOnly"), TEXT),
        "readOnly": BOOLEAN,
    },
    {"mountPropagation": OF_THE_NODE},
    required=("name",),
)
_ENV: Final = Items("name", Fields({"name": TEXT, "value": LINES, "valueFrom": MAPPING}))
_PORTS: Final = Items("containerPort", _PORT)
_AMOUNTS: Final = Quantities(refused={"hugepages-": IN_HUGE_PAGES})
_ADDED: Final = Fields(
    {
        **dict.fromkeys(("name", "workingDir"), TEXT),
        **dict.fromkeys(("image", "imagePullPolicy", "restartPolicy"), WORD),
        **dict.fromkeys(("terminationMessagePath", "terminationMessagePolicy"), WORD),
        **dict.fromkeys(("args", "command"), LIST),
        **dict.fromkeys(_PROBES, _PROBE),
        "env": _ENV,
        "envFrom": ListOf(MAPPING),
        "lifecycle": Fields({"postStart": _HANDLER, "preStop": _HANDLER, "stopSignal": TEXT}),
        "ports": _PORTS,
        "resources": Fields(
            {"requests": _AMOUNTS, "limits": _AMOUNTS},
            {"claims": "spec.engine.resourceClaims gives claims to the engine"},
        ),
        "securityContext": CONTAINER_SECURITY,
    },
    {"volumeDevices": OF_THE_NODE},
    required=("image",),
)


def free_mounts(volumes: Iterable[Mapping[str, Any]]) -> Items:
    """Mounts of any volume but the node's folders, of which the engine may have some for reading alone.

    Args:
        volumes: Of the pod without the template.
    """
    folders = [each["name"] for each in volumes if "hostPath" in each]
    name = Except(folders, "a folder of the node is the engine's alone")
    return Items("mountPath", replace(_MOUNT, taken={**_MOUNT.taken, "name": name}))


def added_container(mounts: Items, own: Iterable[object] = ()) -> Fields:
    """What a container may have that the template brings.

    Args:
        mounts: As `free_mounts` makes them.
        own: Names of kvtier's beside it: one without an image may have been meant to be one of them.
    """
    taken = {**_ADDED.taken, "volumeMounts": mounts}
    if not (names := [*map(str, own)]):
        return replace(_ADDED, taken=taken)
    return replace(_ADDED, taken=taken, absent=f"is required; kvtier's own is {' or '.join(names)}")


def own_container(
    container: Mapping[str, Any], refused: Mapping[str, str], mounts: Items, *, root: bool = False
) -> Fields:
    """What may be changed of a container of kvtier's, and added to it.

    Args:
        container: As it is without the template.
        refused: Fields that are planned, and where they are decided.
        mounts: As `free_mounts` makes them.
        root: Whether the plan has it run as root.
    """
    taken: dict[str, Shape] = {
        "name": TEXT,
        "imagePullPolicy": WORD,
        **dict.fromkeys(_PROBES, _PROBE),
        "env": kept(container, "env", _ENV),
        "ports": kept(container, "ports", _PORTS),
        "securityContext": CONTAINER_SECURITY,
        "volumeMounts": replace(mounts, kept=MountPaths.of(container)),
    }
    why = {**refused, **({"securityContext": IN_ROOTS} if root else {})}
    return Fields({name: shape for name, shape in taken.items() if name not in why}, why)


def kept(there: Mapping[str, Any], name: str, items: Items) -> Items:
    """The list of this name, whose items that are there already stay as they are."""
    return replace(items, kept=[each[items.key] for each in there.get(name, ())])
