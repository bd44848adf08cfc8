"""What an engine's container needs beside its arguments: files, volumes, processes beside it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file the engine's container needs.

    Attributes:
        path: Absolute path in the container.
        content: The whole text.
    """

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume and where the container sees it.

    Attributes:
        name: Volume name, unique in the pod.
        mount_path: Absolute path in the container.
        source: The volume's source as it stands in a pod, such as `{"emptyDir": {}}`.
        payload_bytes: What it is to hold, without what a filesystem needs beside it; 0 where not known.
        read_only: Whether the engine only reads it.
    """

    name: str
    mount_path: str
    source: Mapping[str, Any]
    payload_bytes: int = 0
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A process beside the engine, such as a server of the tiers.

    Attributes:
        name: Container name.
        image: None for the engine's own image.
        command: Program and arguments.
        env: Environment.
        ports: Named ports.
        health: URL that answers once it serves, asked in its own container.
        memory_bytes: Its share of the pod's memory, tier included.
    """

    name: str
    image: str | None
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[str, int] = field(default_factory=dict)
    health: str = ""
    memory_bytes: int = 0
