"""The admission policy that gives pods of other owners a tier: a MutatingAdmissionPolicy and its binding.

Image, paths and the shape of what is added are text of the policy. From a KVCacheTier come the settings, one
variable's value, and numbers, which pass through `quantity()`: a patch that cannot be read back as a pod
would refuse it, whatever the failure policy (k8s.io/apiserver, mutating/patch/json_patch.go).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvtier_connector.payload import (
    ATTACH_VARIABLE,
    CACHE_PATH,
    COPY_COMMAND,
    INIT_NAME,
    PAYLOAD_PATH,
    PLUGIN_NAME,
    PLUGINS,
    SEARCH_PATH,
    VOLUME_NAME,
)
from kvtier_operator.api.resource import GROUP, VERSION
from kvtier_operator.api.spec.tiers.cpu import HugepageSize
from kvtier_operator.install.settings import Installation
from kvtier_operator.planning.attach.container import GPUS, KUEUE, MIRROR, spellings
from kvtier_operator.planning.attach.delivery import CACHE_NAME, Delivery
from kvtier_operator.planning.attach.environment import AS_ELSEWHERE
from kvtier_operator.planning.backends import parts
from kvtier_operator.planning.base.names import ADDED, ATTACH_OPT_IN, ATTACHED, POLICY_VERSIONS
from kvtier_operator.planning.units import MIB

_COPIED: Final = ("cpu", "memory", "ephemeral-storage")
"""Resources of the engine's container that the init container asks for too: neither the pod's sum nor its QoS
class changes by that, and what a LimitRange lets the one have, the other may."""
_AS_THE_ENGINE: Final = ("runAsUser", "runAsGroup", "runAsNonRoot", "seccompProfile", "seLinuxOptions")
"""Who the init container is, where the engine's container says that of itself."""
_LABELS: Final = "params.spec.attach.podSelector.matchLabels"
_HAS_GPU: Final = " || ".join(f"c.?resources.?limits[?'{gpu}'].orValue('0') != '0'" for gpu in GPUS)
_THE_ENGINES: Final = (
    "(has(params.spec.attach.container) "
    "? object.spec.containers.filter(c, c.name == params.spec.attach.container) "
    ": size(object.spec.containers) == 1 ? object.spec.containers "
    f": object.spec.containers.filter(c, {_HAS_GPU}))"
)
"""CEL: the container that vLLM runs in, by its name or as the only one that can be; else none or several."""
_FROM_ELSEWHERE: Final = "variables.engine.?envFrom.orValue([])"
_DISK_VOLUME: Final = f"{parts.VOLUME_NAME}-0"
_DISK_PATH: Final = f"{parts.MOUNT_ROOT}/0"
_WANTS_DISK: Final = "params.status.?attach.?ephemeralStorage.hasValue()"
_NAMED: Final = "object.spec.containers.exists({it}) || object.spec.?initContainers.orValue([]).exists({it})"


def _no_variable(name: str, such_as: str = "") -> str:
    """CEL: the engine's environment has no such variable; CEL may say more of it, which is called `e`."""
    further = f" && {such_as}" if such_as else ""
    return f"{_THE_ENGINES}.all(c, !c.?env.orValue([]).exists(e, e.name == '{name}'{further}))"


def _no_volume(name: str, path: str) -> str:
    """CEL: the pod has no such volume, and the engine none at that path."""
    at = spellings(path)
    return (
        f"!object.spec.?volumes.orValue([]).exists(v, v.name == '{name}') && "
        f"{_THE_ENGINES}.all(c, !c.?volumeMounts.orValue([]).exists(m, m.mountPath.matches('{at}')) "
        f"&& !c.?volumeDevices.orValue([]).exists(d, d.devicePath.matches('{at}')))"
    )


_CONDITIONS: Final[Mapping[str, str]] = {
    "planned-as-it-is": (
        "has(params.spec.attach) && params.?status.?attach.?settings.hasValue() "
        "&& params.status.?observedGeneration.orValue(0) == params.metadata.generation"
    ),
    "selected": (
        f"size({_LABELS}) > 0 && {_LABELS}.all(name, "
        f"object.metadata.?labels[?name] == optional.of({_LABELS}[name]))"
    ),
    "selected-by-no-other": (
        "params.status.?attach.?leavesOut.orValue([]).all(other, other.matchLabels.exists(name, "
        "!(object.metadata.?labels[?name] == optional.of(other.matchLabels[name]))))"
    ),
    "has-the-container": f"size({_THE_ENGINES}) == 1",
    "not-attached": (
        f"!object.metadata.?annotations[?'{ATTACHED}'].hasValue() "
        f"&& !object.metadata.?annotations[?'{MIRROR}'].hasValue()"
    ),
    "not-queued": (
        f"!object.metadata.?labels.orValue({{}}).exists(name, name.startsWith('{KUEUE}')) "
        "&& size(object.spec.?schedulingGates.orValue([])) == 0"
    ),
    "not-windows": (
        "object.spec.?os.?name.orValue('') != 'windows' "
        "&& object.spec.?nodeSelector[?'kubernetes.io/os'].orValue('') != 'windows'"
    ),
    "memory-by-container": "!has(object.spec.resources)",
    "no-settings-of-its-own": _no_variable(ATTACH_VARIABLE),
    "readable-search-path": _no_variable(SEARCH_PATH, "has(e.valueFrom)"),
    "readable-plugins": _no_variable(PLUGINS, "has(e.valueFrom)"),
    "names-are-free": (
        f"{_no_volume(VOLUME_NAME, PAYLOAD_PATH)} && {_no_volume(CACHE_NAME, CACHE_PATH)} && "
        f"!({_NAMED.format(it=f'c, c.name == {json.dumps(INIT_NAME)}')})"
    ),
    "names-of-the-disk-are-free": f"!{_WANTS_DISK} || ({_no_volume(_DISK_VOLUME, _DISK_PATH)})",
    "limits-beside-huge-pages": (
        "size(params.status.?attach.?hugepages.orValue({})) == 0 || "
        f"{_THE_ENGINES}.all(c, ['cpu', 'memory'].exists(name, c.?resources.?limits[?name].hasValue()))"
    ),
}
"""All of them have to hold, by name; one that cannot be evaluated leaves the pod as it is."""

_VARIABLES: Final[Mapping[str, str]] = {
    "plan": "params.status.attach",
    "disk": "params.spec.tiers.disk.volume",
    "engine": f"{_THE_ENGINES}[0]",
    "place": "object.spec.containers.map(c, c.name).indexOf(variables.engine.name)",
    "path": "'/spec/containers/' + string(variables.place)",
    "env": "variables.engine.?env.orValue([])",
    "names": "variables.env.map(e, e.name)",
    "search": f"variables.names.lastIndexOf('{SEARCH_PATH}')",
    "plugins": f"variables.names.lastIndexOf('{PLUGINS}')",
}


def _add(path: str, value: str) -> str:
    """CEL: a patch that adds or replaces; both are CEL."""
    return f"JSONPatch{{op: 'add', path: {path}, value: {value}}}"


def _if(condition: str, *patches: str) -> str:
    """CEL: a list of patches where something is so, else none."""
    return f"({condition} ? [{', '.join(patches)}] : [])"


def _text(text: str) -> str:
    """A CEL literal."""
    return json.dumps(text)


def _map(entries: Mapping[str, str]) -> str:
    """A CEL map of values of different types; a key that begins with `?` has an optional one."""
    return "{" + ", ".join(_entry(name, value) for name, value in entries.items()) + "}"


def _literal(value: object) -> str:
    """CEL: the same, of maps and texts."""
    if isinstance(value, Mapping):
        return _map({name: _literal(part) for name, part in value.items()}) if value else "{}"
    return _text(str(value))


def _entry(name: str, value: str) -> str:
    if name.startswith("?"):
        return f"?{_text(name[1:])}: {value}"
    return f"{_text(name)}: dyn({value})"


def _init_container(image: str) -> str:
    """CEL: what copies the payload, admitted wherever the engine's container is."""
    security = {
        "allowPrivilegeEscalation": "false",
        "capabilities": "{'drop': ['ALL']}",
        "readOnlyRootFilesystem": "true",
        **{f"?{name}": f"variables.engine.?securityContext.?{name}" for name in _AS_THE_ENGINE},
    }
    resources = {
        name: _map({f"?{of}": f"variables.engine.?resources.?{name}[?{_text(of)}]" for of in _COPIED})
        for name in ("requests", "limits")
    }
    return _map(
        {
            "name": _text(INIT_NAME),
            "image": _text(image),
            "command": json.dumps([*COPY_COMMAND]),
            "volumeMounts": f"[{_mount()}]",
            "securityContext": _map(security),
            "resources": _map(resources),
            "terminationMessagePolicy": _text("FallbackToLogsOnError"),
        }
    )


def _mount(volume: str = VOLUME_NAME, path: str = PAYLOAD_PATH) -> str:
    return _map({"name": _text(volume), "mountPath": _text(path)})


_MOUNTS: Final = "variables.path + '/volumeMounts/-'"


def _listed(path: str, is_there: str) -> str:
    """CEL: an empty list where there is none to add to."""
    return _if(f"!{is_there}", _add(path, "[]"))


def _variable(name: str, value: str) -> str:
    return _add("variables.path + '/env/-'", _map({"name": _text(name), "value": value}))


def _environment(delivery: Delivery) -> Iterable[str]:
    """CEL: the payload goes in front of what Python finds, and is on vLLM's list where there is one."""
    yield _listed("variables.path + '/env'", "variables.engine.?env.hasValue()")
    search, plugins = (_Own(name) for name in ("search", "plugins"))
    payload = delivery.environment[SEARCH_PATH]
    in_front = f"{search.value} == '' ? '{payload}' : '{payload}:' + {search.value}"
    listed = f"{plugins.value} == '' ? '{PLUGIN_NAME}' : {plugins.value} + ',{PLUGIN_NAME}'"
    yield _if(search.is_there, _add(search.path, in_front))
    is_listed = f"{plugins.value}.split(',').exists(word, word == '{PLUGIN_NAME}')"
    yield _if(f"{plugins.is_there} && !{is_listed}", _add(plugins.path, listed))
    yield f"[{_variable(ATTACH_VARIABLE, 'variables.plan.settings')}]"
    for name, value in delivery.environment.items():
        text = _text(value)
        if name == SEARCH_PATH:
            text = f"size({_FROM_ELSEWHERE}) > 0 ? {_text(f'{value}:{AS_ELSEWHERE}')} : {text}"
        yield _if(f"!('{name}' in variables.names)", _variable(name, f"({text})"))


@dataclass(frozen=True, slots=True)
class _Own:
    """CEL about a variable that the engine's container may have, by the policy's variable with its place."""

    name: str

    @property
    def is_there(self) -> str:
        return f"variables.{self.name} >= 0"

    @property
    def value(self) -> str:
        return f"variables.env[variables.{self.name}].?value.orValue('')"

    @property
    def path(self) -> str:
        return f"variables.path + '/env/' + string(variables.{self.name}) + '/value'"


def _raised(resource: str, by: str, where: str) -> Iterable[str]:
    """CEL: a resource's request and limit by a number of the plan's; what is not there, or 0, stays so."""
    for name in ("requests", "limits"):
        there = f"variables.engine.?resources.?{name}[?{_text(resource)}]"
        total = _whole_bytes(f"quantity({there}.value()).add(quantity({by}))")
        path = f"variables.path + '/resources/{name}/{resource}'"
        is_more = f"quantity({there}.orValue('0')).isGreaterThan(quantity('0'))"
        yield _if(f"{where} && {is_more}", _add(path, total))


def _whole_bytes(total: str) -> str:
    """CEL: a quantity as text in MiB or bytes, rounded up, as 1.1Gi is no whole number of bytes."""
    whole = f"[{total}].map(q, q.isInteger() ? q.asInteger() : int(q.asApproximateFloat()) + 1)"
    return f"{whole}.map(n, n % {MIB} == 0 ? string(n / {MIB}) + 'Mi' : string(n))[0]"


def _pages(size: HugepageSize) -> Iterable[str]:
    """CEL: huge pages of a size, requested and as a limit, beside those that the engine has itself."""
    name = f"hugepages-{size}"
    wanted = f"variables.plan.?hugepages[?{_text(name)}]"
    for kind in ("requests", "limits"):
        own = f"quantity(variables.engine.?resources.?{kind}[?{_text(name)}].orValue('0'))"
        total = _whole_bytes(f"{own}.add(quantity({wanted}.value()))")
        place = f"variables.path + '/resources/{kind}/{name}'"
        yield _if(f"{wanted}.hasValue()", _add(place, total))


_HAS_DISK: Final = "variables.plan.?ephemeralStorage.hasValue()"
_ON_THE_NODE: Final = f"{_HAS_DISK} && variables.disk.?emptyDir.hasValue()"
_DISK_SIZE: Final = _whole_bytes("quantity(variables.plan.ephemeralStorage)")


def _disk() -> str:
    """CEL: the disk tier's volume, of one of the two kinds that go with their pod."""
    claim = {
        "accessModes": "['ReadWriteOnce']",
        "resources": _map({"requests": _map({"storage": _DISK_SIZE})}),
        "?storageClassName": "variables.disk.?ephemeral.?storageClassName",
    }
    template = _map({"volumeClaimTemplate": _map({"spec": _map(claim)})})
    empty, ephemeral = (
        _map({"name": _text(_DISK_VOLUME), kind: source})
        for kind, source in (("emptyDir", _map({"sizeLimit": _DISK_SIZE})), ("ephemeral", template))
    )
    return f"variables.disk.?emptyDir.hasValue() ? {empty} : {ephemeral}"


def _copy_payload(image: str) -> Iterable[str]:
    """CEL: the init container that copies the payload, in front of others."""
    yield _listed("'/spec/initContainers'", "object.spec.?initContainers.hasValue()")
    yield f"[{_add(_text('/spec/initContainers/0'), _init_container(image))}]"


def _note_added() -> Iterable[str]:
    """CEL: what the engine's container asks for more; the init container has what it asked for before."""
    memory = "'memory=' + variables.plan.?memory.orValue('0')"
    disk = f"({_ON_THE_NODE} ? ',ephemeral-storage=' + variables.plan.ephemeralStorage : '')"
    yield f"[{_add(_text(_annotation(ADDED)), f'{memory} + {disk}')}]"


def _annotation(name: str) -> str:
    return f"/metadata/annotations/{name.replace('/', '~1')}"


def _mutation(image: str, delivery: Delivery) -> str:
    """CEL: all patches, in one expression, so that a pod gets all of it or nothing."""
    is_copied = delivery is Delivery.INIT_CONTAINER
    parts = [
        _listed("'/spec/volumes'", "object.spec.?volumes.hasValue()"),
        *(f"[{_add(_text('/spec/volumes/-'), _literal(volume))}]" for volume in delivery.volumes(image)),
        *(_copy_payload(image) if is_copied else ()),
        _listed("variables.path + '/volumeMounts'", "variables.engine.?volumeMounts.hasValue()"),
        *(f"[{_add(_MOUNTS, _mount(name, path))}]" for name, path in delivery.mounts.items()),
        *_environment(delivery),
        _if(_HAS_DISK, _add("'/spec/volumes/-'", _disk()), _add(_MOUNTS, _mount(_DISK_VOLUME, _DISK_PATH))),
        *_raised("memory", "variables.plan.memory", "variables.plan.?memory.hasValue()"),
        *_raised("ephemeral-storage", "variables.plan.ephemeralStorage", _ON_THE_NODE),
        *(patch for size in HugepageSize for patch in _pages(size)),
        _if("!has(object.metadata.annotations)", _add("'/metadata/annotations'", "{}")),
        f"[{_add(_text(_annotation(ATTACHED)), 'params.metadata.name')}]",
        *(() if is_copied else _note_added()),
    ]
    return "\n+ ".join(parts)


def attachment_policy(
    install: Installation,
    api_version: str = POLICY_VERSIONS[0],
    delivery: Delivery = Delivery.INIT_CONTAINER,
) -> dict[str, Any]:
    """Changes pods as they are made, and leaves alone what it does not understand."""
    expression = _mutation(install.connector_image, delivery)
    return {
        "apiVersion": api_version,
        "kind": "MutatingAdmissionPolicy",
        "metadata": install.cluster_metadata(),
        "spec": {
            "failurePolicy": "Ignore",
            "reinvocationPolicy": "IfNeeded",
            "paramKind": {"apiVersion": f"{GROUP}/{VERSION}", "kind": "KVCacheTier"},
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": dict(ATTACH_OPT_IN)},
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ],
            },
            "matchConditions": [{"name": name, "expression": text} for name, text in _CONDITIONS.items()],
            "variables": [{"name": name, "expression": text} for name, text in _VARIABLES.items()],
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
        },
    }


def attachment_policy_binding(install: Installation, api_version: str = POLICY_VERSIONS[0]) -> dict[str, Any]:
    """With each KVCacheTier of the pod's own namespace; where there is none, nothing is done."""
    return {
        "apiVersion": api_version,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": install.cluster_metadata(),
        "spec": {
            "policyName": install.name,
            "paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"},
        },
    }
