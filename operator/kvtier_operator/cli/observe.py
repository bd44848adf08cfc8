"""Gathers, at the edge, what the planner may know of the world."""

import json
import os
import resource
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from kvtier_operator.api.model import ModelSpec
from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.doctor.probes.memlock import has_ipc_lock
from kvtier_operator.doctor.probes.volume import used_bytes
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.image_source import ImageSource
from kvtier_operator.planning.observed import Machine, Observed
from kvtier_operator.runtime.folders import state_folder, volume_folders

_SHM: Final = Path("/dev/shm")  # noqa: S108 - its size is read, nothing is written there
_HUGEPAGES: Final = Path("/sys/kernel/mm/hugepages")
_HUB_TIMEOUT_S: Final = 5


def observe(  # noqa: PLR0913 - facts of six kinds
    resource_: KVCacheTier,
    *,
    model_config: str | None = None,
    local: bool = False,
    hub: bool = False,
    run_folder: Path | None = None,
    images: ImageSource | None = None,
) -> Observed:
    """Facts for one plan.

    Args:
        resource_: The resource to plan for.
        model_config: A config.json to read the model's shape from.
        local: Whether the plan is for this machine, so that its memory, pages and limits count.
        hub: Whether Hugging Face may be asked for a config.json that neither the file system nor the
            catalogue has.
        run_folder: Folder of a local run; a new one when empty.
        images: Where images come from; where they are published when empty.

    Raises:
        InvalidInputError: A config.json cannot be read, or is not one.
    """
    model = resource_.spec.model
    config, source, weights_bytes = None, "", None
    folder = Path(model.name)
    if model_config is not None:
        config, source = _read_config(Path(model_config), "--model-config"), model_config
        weights_bytes = weights_in(Path(model_config).parent)
    elif model.geometry is None and folder.is_dir():
        path = folder / "config.json"
        config, source = _read_config(path, "spec.model.name"), str(path)
        weights_bytes = weights_in(folder)
    elif model.geometry is None and hub:
        config, source = _from_hub(model)
    return Observed(
        model_config=config,
        model_config_source=source,
        machine=_machine(resource_, run_folder) if local else None,
        weights_bytes=weights_bytes,
        images=images or ImageSource(),
    )


def weights_in(folder: Path) -> int | None:
    """Bytes of the weight files in a folder, safetensors before the older format; None without any."""
    for pattern in ("*.safetensors", "pytorch_model*.bin"):
        if sizes := [path.stat().st_size for path in folder.glob(pattern)]:
            return sum(sizes)
    return None


def _machine(resource_: KVCacheTier, run_folder: Path | None) -> Machine:
    """This machine, with the disk on which a run would have its tier, and what an earlier one left there."""
    disk = resource_.spec.tiers.disk
    if disk is not None and disk.volume.host_path is not None:
        from kvtier_operator.planning.backends.kvtier_disk import FOLDER  # noqa: PLC0415 - loads the planner

        place = Path(disk.volume.host_path.path)
        return this_machine(place, (place / FOLDER,))
    if run_folder is None:
        return this_machine(state_folder())
    return this_machine(run_folder, volume_folders(run_folder))


def this_machine(disk_path: Path | None = None, own: Iterable[Path] = ()) -> Machine:
    """Memory, /dev/shm, free huge pages, the memlock limit, the disk and cores of this machine.

    Args:
        disk_path: Where a disk tier would live, which may not be there yet; the working folder when empty.
        own: Folders there that are the tier's already.
    """
    place = (disk_path or Path()).absolute()
    there = next(each for each in (place, *place.parents) if each.is_dir())
    return Machine(
        memory_bytes=_memory_bytes(),
        shm_bytes=shutil.disk_usage(_SHM).free if _SHM.is_dir() else None,
        free_hugepages=_free_hugepages(),
        memlock_bytes=_memlock_bytes(),
        disk_free_bytes=shutil.disk_usage(there).free,
        disk_own_bytes=sum(used_bytes(folder) for folder in own),
        cores=tuple(sorted(os.sched_getaffinity(0))),
    )


def _memory_bytes() -> int:
    """Physical memory, or the container's limit where that is lower (cgroup v2, memory.max)."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except OSError:
        return physical
    return min(physical, int(limit)) if limit.isdigit() else physical


def _memlock_bytes() -> int | None:
    """RLIMIT_MEMLOCK; None where there is no limit or CAP_IPC_LOCK is effective."""
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return None if soft == resource.RLIM_INFINITY or has_ipc_lock() else soft


def _free_hugepages() -> Mapping[int, int]:
    """Free pages by page size (Linux, Documentation/admin-guide/mm/hugetlbpage.rst)."""
    free = {}
    for pool in _HUGEPAGES.glob("hugepages-*kB"):
        page_bytes = int(pool.name.removeprefix("hugepages-").removesuffix("kB")) * 1024
        free[page_bytes] = int((pool / "free_hugepages").read_text(encoding="ascii"))
    return free


def _read_config(path: Path, field: str) -> Mapping[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInputError(str(path), Problem(field, f"cannot be read: {error.strerror}")) from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InvalidInputError(str(path), Problem(field, f"not a config.json: {error}")) from error
    if not isinstance(config, dict):
        raise InvalidInputError(str(path), Problem(field, "not a config.json: the file holds no JSON object"))
    return config


def _from_hub(model: ModelSpec) -> tuple[Mapping[str, Any] | None, str]:
    """config.json from Hugging Face, from its cache when offline; nothing where neither has it."""
    from kvtier_operator.planning.model_shape.catalogue import shape_from_catalogue  # noqa: PLC0415 - see below

    if shape_from_catalogue(model.name) is not None:
        return None, ""  # known without asking anyone
    try:
        from huggingface_hub import hf_hub_download, try_to_load_from_cache  # noqa: PLC0415 - slow to import
        from huggingface_hub.file_download import get_hf_file_metadata, hf_hub_url  # noqa: PLC0415 - as above
    except ImportError:
        return None, ""
    name, revision = model.name, model.revision
    try:
        path = try_to_load_from_cache(name, "config.json", revision=revision)
        if not isinstance(path, str):
            # Asked once: a download asks five times more, for half a minute, where there is no network.
            get_hf_file_metadata(hf_hub_url(name, "config.json", revision=revision), timeout=_HUB_TIMEOUT_S)
            path = hf_hub_download(name, "config.json", revision=revision, etag_timeout=_HUB_TIMEOUT_S)
    except Exception:  # noqa: BLE001 - no name of a model, no network, no such model: nothing is known of it
        return None, ""
    return _read_config(Path(path), "spec.model.name"), f"huggingface.co/{name}, config.json"
