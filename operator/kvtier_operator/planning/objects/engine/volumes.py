"""Volumes of the engine's pod, where its containers see them, and the ConfigMap with its files."""

from pathlib import PurePosixPath
from typing import Any, Final

from kvtier_connector.payload import PAYLOAD_PATH, VOLUME_NAME
from kvtier_operator.planning.backends import traits_of
from kvtier_operator.planning.backends.traits import Folder
from kvtier_operator.planning.base.container_parts import ConfigFile, Mount
from kvtier_operator.planning.base.names import Component, Names, content_hash
from kvtier_operator.planning.objects.common import config_map
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.units import quantity

HOME: Final = "/var/lib/kvtier/home"
"""Home of the engine's user: compile caches."""
_SHM: Final = "shm"
_HOME: Final = "home"
_CONFIG: Final = "config"
_SHARED_SOURCES: Final = ("hostPath", "persistentVolumeClaim")


def engine_config_map(plan: Plan) -> dict[str, Any] | None:
    """One key a file; None where the backend needs no file."""
    if not plan.engine.files:
        return None
    names = Names.of(plan)
    files = {_file_key(file): file.content for file in plan.engine.files}
    return config_map(names, names.engine, Component.ENGINE, files)


def prefixes_config_map(plan: Plan) -> dict[str, Any] | None:
    """The same for prefixes, which are in a volume of their own; None without any."""
    if not plan.engine.prefixes:
        return None
    names = Names.of(plan)
    files = {_file_key(file): file.content for file in plan.engine.prefixes}
    return config_map(names, names.prefixes, Component.ENGINE, files)


def _file_key(file: ConfigFile) -> str:
    """The ConfigMap's key of a file: its base name."""
    return PurePosixPath(file.path).name


def files_hash(plan: Plan) -> str:
    """Hash of everything in the ConfigMaps: engines read it when they start."""
    files = (*plan.engine.files, *plan.engine.prefixes)
    return content_hash(*(part for file in files for part in (file.path, file.content)))


def engine_volumes(plan: Plan) -> list[dict[str, Any]]:
    """Shared memory, the home, the connector, the model, files, secrets, control, prefixes, a disk tier.

    No hugetlbfs volume: kvtier's connector maps huge pages through memfd_create(2), LMCache through
    mmap(2) with MAP_HUGETLB; the request in the container's resources is what both need.
    """
    volumes: list[dict[str, Any]] = [
        {"name": _SHM, "emptyDir": {"medium": "Memory", "sizeLimit": quantity(plan.budget.shm_bytes)}},
        {"name": _HOME, "emptyDir": {}},
        *([{"name": VOLUME_NAME, "emptyDir": {}}] if plan.engine.payload else []),
    ]
    if plan.weights:
        volumes.append({"name": plan.weights.name, **plan.weights.source})
    if plan.engine.files:
        volumes.append({"name": _CONFIG, "configMap": {"name": Names.of(plan).engine}})
    engine = plan.engine
    folders = (*engine.secrets, *engine.folders, *engine.mounts)
    volumes += [{"name": mount.name, **mount.source} for mount in folders]
    return volumes


def engine_volume_mounts(plan: Plan) -> list[dict[str, Any]]:
    """What the engine's container sees."""
    mounts: list[dict[str, Any]] = [
        shared_memory_mount(),
        {"name": _HOME, "mountPath": HOME},
        *([payload_mount()] if plan.engine.payload else []),
    ]
    if plan.weights:
        # the same folder for all pods: what one of them has downloaded is the others', too
        mount = {"name": plan.weights.name, "mountPath": plan.weights.mount_path}
        mounts.append(mount | ({"readOnly": True} if plan.weights.read_only else {}))
    mounts += [
        {"name": _CONFIG, "mountPath": file.path, "subPath": _file_key(file), "readOnly": True}
        for file in plan.engine.files
    ]
    mounts += [
        {"name": mount.name, "mountPath": mount.mount_path, **({"readOnly": True} if mount.read_only else {})}
        for mount in plan.engine.folders
    ]
    return mounts + secret_volume_mounts(plan) + disk_volume_mounts(plan)


def secret_volume_mounts(plan: Plan) -> list[dict[str, Any]]:
    """Where a container sees the Secrets of the remote tier's store."""
    return [
        {"name": mount.name, "mountPath": mount.mount_path, "readOnly": True} for mount in plan.engine.secrets
    ]


def shared_memory_mount() -> dict[str, Any]:
    """Where a container sees the pod's shared memory."""
    return {"name": _SHM, "mountPath": "/dev/shm"}  # noqa: S108 - the kernel's name for shared memory


def payload_mount() -> dict[str, Any]:
    """Where containers see the connector; the engine writes what numba compiles of it beside it."""
    return {"name": VOLUME_NAME, "mountPath": PAYLOAD_PATH}


def disk_volume_mounts(plan: Plan) -> list[dict[str, Any]]:
    """Where a container sees the disk tier."""
    return [_disk_mount(plan, mount) for mount in plan.engine.mounts]


def _disk_mount(plan: Plan, mount: Mount) -> dict[str, Any]:
    whole = {"name": mount.name, "mountPath": mount.mount_path}
    shared = any(source in mount.source for source in _SHARED_SOURCES)
    folder = traits_of(plan.resource.spec.backend).disk.folder
    if shared and folder is Folder.EMPTIED:
        # emptied at start: on a volume that pods share each gets one of its own
        return whole | {"subPathExpr": "$(POD_NAME)"}
    if shared and folder is Folder.OWN:
        # locked, and kept from pod to pod: resources that share a disk get one each
        names = Names.of(plan)
        return whole | {"subPath": f"{names.namespace}/{names.resource}"}
    return whole
