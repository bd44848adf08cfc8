"""Where an engine's pod has the model that it serves."""

from typing import Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.pod import Volume
from kvtier_operator.planning.backends.parts.disk import MOUNT_ROOT
from kvtier_operator.planning.kv_cache.geometry import Geometry
from kvtier_operator.planning.pod.container_parts import Mount
from kvtier_operator.planning.pod.volumes import volume_source
from kvtier_operator.planning.units import GIB, MIB, ceil_div, round_up
from kvtier_operator.planning.weights.model_source import MODEL_DIR, SourceKind, model_source

HF_HOME: Final = "/var/lib/kvtier/huggingface"
"""Where the volume is mounted, and the variable's value: huggingface_hub downloads to its folder `hub`."""
CACHE_VARIABLES: Final = frozenset({"HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
"""Variables that move the downloads (huggingface_hub, constants.py)."""
SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - the kernel's name for it
VOLUME_NAME: Final = "weights"
SOURCE_VOLUME_NAME: Final = "model"
"""Of a source that Kubernetes mounts."""


def plan_weights(spec: Spec, geometry: Geometry) -> Mount | None:
    """The volume for the weights; None where there are none to keep, or the resource says itself where."""
    source = model_source(spec.model)
    weights_bytes = geometry.weights_bytes or 0
    if source is not None and source.volume is not None:
        held = weights_bytes if source.kind is SourceKind.IMAGE else 0
        return Mount(SOURCE_VOLUME_NAME, MODEL_DIR, source.volume, held, read_only=True)
    moved = any(variable.name in CACHE_VARIABLES for variable in spec.engine.env)
    if source is None and spec.model.volume is None and (moved or not is_downloaded(spec)):
        return None
    weights_bytes = weights_bytes if is_downloaded(spec) else 0
    return Mount(
        name=VOLUME_NAME,
        mount_path=HF_HOME if source is None else MODEL_DIR,
        source=volume_source(
            spec.model.volume or Volume(empty_dir={}),
            weights_volume_bytes(weights_bytes) if weights_bytes else None,
        ),
        payload_bytes=weights_bytes,
        read_only=source is not None,
    )


def moved_weights_bytes(spec: Spec, geometry: Geometry) -> int:
    """What vLLM downloads into the container's own layer, since the resource's environment says so; or 0."""
    return (geometry.weights_bytes or 0) if moves_weights(spec) else 0


def moves_weights(spec: Spec) -> bool:
    """Whether it does: no volume is where the resource's environment has the downloads go."""
    moved = [each.value or "" for each in spec.engine.env if each.name in CACHE_VARIABLES]
    elsewhere = spec.model.volume is not None or spec.model.source is not None
    return bool(moved) and not elsewhere and is_downloaded(spec) and not any(map(_is_mounted, moved))


def _is_mounted(path: str) -> bool:
    return path.startswith((SHARED_MEMORY, MOUNT_ROOT))


def is_downloaded(spec: Spec) -> bool:
    """Whether vLLM or a fetcher brings the model: a path names a folder that is there, a source may."""
    source = model_source(spec.model)
    if source is not None:
        return source.kind is SourceKind.FETCHED
    return not spec.model.name.startswith("/")


def is_brought(spec: Spec) -> bool:
    """Whether the model comes to the node before the engine starts."""
    source = model_source(spec.model)
    return source is not None and source.kind in (SourceKind.FETCHED, SourceKind.IMAGE)


def weights_volume_bytes(weights_bytes: int) -> int:
    """Size of a volume for weights of that size: a tenth more, at least 1 GiB, to a whole MiB.

    vLLM downloads the files that the checkpoint's index names, once, each beside its place and then moved
    (model_loader/weight_utils.py; huggingface_hub, file_download.py); hf_xet keeps no chunks by default.
    What comes on top is tokenizer, configurations and code, and what a broken download leaves behind.
    """
    return round_up(weights_bytes + max(GIB, ceil_div(weights_bytes, 10)), MIB)
