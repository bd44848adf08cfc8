"""Parts of containers and pods that backends and the engine bring: files, mounts, sidecars, volumes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kvtier_operator.api.spec.pod import Volume
from kvtier_operator.planning.units import quantity


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


def volume_source(volume: Volume, size_bytes: int | None) -> Mapping[str, Any]:
    """The source of a pod's volume.

    Args:
        volume: As the resource has it.
        size_bytes: What it must hold, where that is known: a claim asks for it, and an emptyDir is bounded by
            it; the other kinds have the size that they have.
    """
    if volume.ephemeral is not None:
        claim: dict[str, Any] = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": quantity(size_bytes or 0)}},
        }
        if volume.ephemeral.storage_class_name:
            claim["storageClassName"] = volume.ephemeral.storage_class_name
        return {"ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
    if volume.persistent_volume_claim is not None:
        return {"persistentVolumeClaim": {"claimName": volume.persistent_volume_claim.claim_name}}
    if volume.host_path is not None:
        return {"hostPath": {"path": volume.host_path.path, "type": "DirectoryOrCreate"}}
    return {"emptyDir": {} if size_bytes is None else {"sizeLimit": quantity(size_bytes)}}


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """The engine as a container or a process.

    Attributes:
        image: Container image.
        args: All vLLM arguments after the program, the model's name included.
        env: Plain environment variables.
        env_from_resource: Variables passed through from the resource (with valueFrom), as in a pod.
        files: Files it needs.
        mounts: Volumes it needs.
        sidecars: Processes beside it.
        scratch_dirs: Folders to empty before each start.
        port: Port of the OpenAI-compatible server.
    """

    image: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    env_from_resource: tuple[Mapping[str, Any], ...]
    files: tuple[ConfigFile, ...]
    mounts: tuple[Mount, ...]
    sidecars: tuple[Sidecar, ...]
    port: int
    scratch_dirs: tuple[str, ...] = ()
