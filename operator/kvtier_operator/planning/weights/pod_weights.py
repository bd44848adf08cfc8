"""Where a pod has the model's weights from, and the volume that keeps them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.model import ModelSpec
from kvtier_operator.api.spec.model_source import CLAIM, IMAGE, NODE
from kvtier_operator.api.spec.pod import Volume
from kvtier_operator.planning.backends.parts import MOUNT_ROOT
from kvtier_operator.planning.base.container_parts import Mount, volume_source
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.units import GIB, MIB, ceil_div, round_up

MODEL_DIR: Final = "/var/lib/kvtier/model"
"""Where the containers see the model's volume."""


class SourceKind(StrEnum):
    """Who brings the weights to the pod."""

    CLAIM = CLAIM
    IMAGE = IMAGE
    NODE = NODE
    FETCHED = ""


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model's source."""

    kind: SourceKind  # who brings it
    # name of the claim, reference of the image, folder of the node, or all of the source that the
    # fetcher gets
    place: str
    folder: str  # where the model is, as the engine's container sees it

    @property
    def volume(self) -> Mapping[str, Any] | None:
        """The pod's volume; None where the resource chooses it."""
        match self.kind:
            case SourceKind.CLAIM:
                return {"persistentVolumeClaim": {"claimName": self.place, "readOnly": True}}
            case SourceKind.IMAGE:
                return {"image": {"reference": self.place, "pullPolicy": "IfNotPresent"}}
            case SourceKind.NODE:
                return {"hostPath": {"path": self.place, "type": "Directory"}}
        return None


def model_source(model: ModelSpec) -> ModelSource | None:
    """The source of a model; None for the Hub, and for a folder of the engine's image."""
    source = model.source
    if source is None:
        return None
    kind = next(kind for kind in SourceKind if source.startswith(kind))
    rest = source.removeprefix(kind)
    match kind:
        case SourceKind.CLAIM:
            place, _, path = rest.partition("/")
            return ModelSource(kind, place, _below(path))
        case SourceKind.IMAGE:
            place, _, path = rest.partition("#")
            return ModelSource(kind, place, _below(path))
        case SourceKind.NODE:
            return ModelSource(kind, rest, MODEL_DIR)
    # a volume that resources share has a folder for each of their models, as huggingface_hub's cache has
    return ModelSource(kind, source, _below(f"models--{model.name.replace('/', '--')}"))


def _below(path: str) -> str:
    return f"{MODEL_DIR}/{path}" if path else MODEL_DIR


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
    moved = [variable.value or "" for variable in spec.engine.env if variable.name in CACHE_VARIABLES]
    elsewhere = spec.model.volume is not None or spec.model.source is not None
    return bool(moved) and not elsewhere and is_downloaded(spec) and not any(map(_is_mounted, moved))


def _is_mounted(path: str) -> bool:
    return path.startswith((SHARED_MEMORY, MOUNT_ROOT))


BUCKETS: Final = ("s3://", "gs://", "az://")
"""How names begin whose weights vLLM streams from a bucket (transformers_utils/runai_utils.py)."""


def is_streamed(model: ModelSpec) -> bool:
    """Whether vLLM reads the weights from a bucket straight to its devices."""
    return model.source is None and model.name.lower().startswith(BUCKETS)


def is_downloaded(spec: Spec) -> bool:
    """Whether vLLM or a fetcher brings the model: a path names a folder that is there, a source may."""
    source = model_source(spec.model)
    if source is not None:
        return source.kind is SourceKind.FETCHED
    return not spec.model.name.startswith("/") and not is_streamed(spec.model)


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
