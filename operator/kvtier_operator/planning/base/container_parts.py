"""Parts of containers and pods that backends and the engine bring: files, mounts, sidecars, volumes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kvtier_operator.api.spec.pod import Volume
from kvtier_operator.planning.units import quantity


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file the engine's container needs."""

    path: str  # absolute path in the container
    content: str  # the whole text


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume and where the container sees it."""

    name: str  # volume name, unique in the pod
    mount_path: str  # absolute path in the container
    source: Mapping[str, Any]  # the volume's source as it stands in a pod, such as `{"emptyDir": {}}`
    payload_bytes: int = 0  # what it is to hold, without what a filesystem needs beside it; 0 where not known
    read_only: bool = False  # whether the engine only reads it


def secret_variable(name: str, secret: str, key: str, *, optional: bool = False) -> Mapping[str, Any]:
    """A container's variable whose value is a Secret's key; one that may lack is left out then."""
    reference = {"name": secret, "key": key} | ({"optional": True} if optional else {})
    return {"name": name, "valueFrom": {"secretKeyRef": reference}}


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A process beside the engine, such as a server of the tiers."""

    name: str  # container name
    image: str | None  # None for the engine's own image
    command: tuple[str, ...]  # program and arguments
    env: Mapping[str, str] = field(default_factory=dict)  # environment
    env_from: tuple[Mapping[str, Any], ...] = ()  # further variables, as in a pod
    ports: Mapping[str, int] = field(default_factory=dict)  # named ports
    health: str = ""  # URL that answers once it serves, asked in its own container
    memory_bytes: int = 0  # its share of the pod's memory, tier included


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
    """The engine as a container or a process."""

    image: str  # container image
    args: tuple[str, ...]  # all vLLM arguments after the program, the model's name included
    env: Mapping[str, str]  # plain environment variables
    # variables of the backend's and the resource's that are more than text, as in a pod and in their order
    env_from_resource: tuple[Mapping[str, Any], ...]
    files: tuple[ConfigFile, ...]  # files it needs
    mounts: tuple[Mount, ...]  # volumes it needs
    sidecars: tuple[Sidecar, ...]  # processes beside it
    port: int  # port of the OpenAI-compatible server
    secrets: tuple[Mount, ...] = ()  # Secrets as folders, only read
    folders: tuple[Mount, ...] = ()  # further volumes, which no other container sees
    prefixes: tuple[ConfigFile, ...] = ()  # files in one of them, which are there before it starts
    scratch_dirs: tuple[str, ...] = ()  # folders to empty before each start
    payload: str | None = None  # image that the pod copies the connector from; None where the engine's has it
