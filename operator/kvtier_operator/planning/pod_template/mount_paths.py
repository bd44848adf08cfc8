"""Paths of a container that its pod template leaves alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from posixpath import normpath
from typing import Any, Final, Self

from kvtier_operator.planning.objects.engine.volumes import HOME

_OPEN: Final = (HOME, "/tmp")  # noqa: S108 - a mount
"""Folders that hold nothing planned: a template may mount a cache of its own below them."""


@dataclass(frozen=True, slots=True)
class MountPaths:
    """Where kvtier mounts something: in it is each path at which another mount would hide that or a part.

    A path above hides nothing: container runtimes mount from the root down.

    Attributes:
        paths: In their shortest form.
    """

    paths: tuple[str, ...]

    @classmethod
    def of(cls, container: Mapping[str, Any]) -> Self:
        """Those of a container."""
        return cls(tuple(_shortest(each["mountPath"]) for each in container.get("volumeMounts", ())))

    def __contains__(self, path: object) -> bool:
        place = _shortest(str(path))
        return any(
            place == each or (each not in _OPEN and place.startswith(f"{each}/")) for each in self.paths
        )


def _shortest(path: str) -> str:
    """As the kubelet has it: a path without the first slash begins at the root as well."""
    return normpath(f"/{path.lstrip('/')}")
