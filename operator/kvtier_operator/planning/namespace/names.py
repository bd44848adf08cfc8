"""Resources as LimitRanges and ResourceQuotas name them, and the fields of a KVCacheTier behind them."""

import re
from typing import Final

from kvtier_operator.planning.objects.names import Component

CPU: Final = "cpu"
MEMORY: Final = "memory"
STORAGE: Final = "storage"
_REQUESTS, _LIMITS = "requests.", "limits."
_DISK_VOLUME: Final = re.compile(r"kv-disk-(\d+)")
_ENGINE_FIELDS: Final = (
    (MEMORY, "spec.tiers.cpu.capacity"),
    ("hugepages-", "spec.tiers.cpu.capacity"),
    ("ephemeral-storage", "spec.tiers.disk.capacity"),
    (STORAGE, "spec.tiers.disk.capacity"),
    ("persistentvolumeclaims", "spec.replicas"),
    ("pods", "spec.replicas"),
    ("count/", "spec.replicas"),
    ("nvidia.com/gpu", "spec.engine.tensorParallelSize"),
)


def plain(resource: str) -> str:
    """What a quota's name counts, such as `cpu` of `limits.cpu`."""
    if resource.endswith(f"/{_REQUESTS}{STORAGE}"):
        return STORAGE
    return resource.removeprefix(_REQUESTS).removeprefix(_LIMITS)


def field(component: Component, resource: str) -> str:
    """Path of the field that decides how much of a resource the pods of a component take."""
    name = plain(resource)
    if component is Component.PICKER:
        return "spec.router.replicas" if name in ("pods", "count/pods") else "spec.router.resources"
    return next((field for start, field in _ENGINE_FIELDS if name.startswith(start)), "spec.engine.resources")


def volume_field(volume: str) -> str:
    """Path of the field behind a volume of the engines' pods."""
    found = _DISK_VOLUME.fullmatch(volume)
    index = int(found[1]) if found else 0
    return f"spec.tiers.disk.extraVolumes[{index - 1}]" if index else "spec.tiers.disk.volume"
