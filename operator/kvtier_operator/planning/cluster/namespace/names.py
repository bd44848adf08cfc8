"""Resources as LimitRanges and ResourceQuotas name them."""

from typing import Final

CPU: Final = "cpu"
MEMORY: Final = "memory"
STORAGE: Final = "storage"
_REQUESTS, _LIMITS = "requests.", "limits."
_OF_CLASS: Final = ".storageclass.storage.k8s.io/"


def plain(resource: str) -> str:
    """What a quota's name counts, such as `cpu` of `limits.cpu`, of whatever storage class."""
    name = resource.rpartition(_OF_CLASS)[2]
    return name.removeprefix(_REQUESTS).removeprefix(_LIMITS)


def storage_class_of(resource: str) -> str:
    """The storage class of whose volumes alone a quota's name speaks; empty where it speaks of all."""
    return resource.rpartition(_OF_CLASS)[0]
