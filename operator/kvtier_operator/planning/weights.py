"""Where an engine's pod keeps the model that it downloads."""

from typing import Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.api.volume import Volume
from kvtier_operator.planning.geometry import Geometry
from kvtier_operator.planning.plan import Mount
from kvtier_operator.planning.units import GIB, MIB, ceil_div, round_up
from kvtier_operator.planning.volumes import volume_source

HF_HOME: Final = "/var/lib/kvtier/huggingface"
"""Where the volume is mounted, and the variable's value: huggingface_hub downloads to its folder `hub`."""
CACHE_VARIABLES: Final = frozenset({"HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
"""Variables that move the downloads (huggingface_hub, constants.py)."""
VOLUME_NAME: Final = "weights"


def plan_weights(spec: Spec, geometry: Geometry) -> Mount | None:
    """The volume for the weights; None where nothing is downloaded, or the resource says itself where to."""
    moved = any(variable.name in CACHE_VARIABLES for variable in spec.engine.env)
    if spec.model.volume is None and (moved or not is_downloaded(spec)):
        return None
    weights_bytes = (geometry.weights_bytes or 0) if is_downloaded(spec) else 0
    return Mount(
        name=VOLUME_NAME,
        mount_path=HF_HOME,
        source=volume_source(
            spec.model.volume or Volume(empty_dir={}),
            weights_volume_bytes(weights_bytes) if weights_bytes else None,
        ),
        payload_bytes=weights_bytes,
    )


def is_downloaded(spec: Spec) -> bool:
    """Whether vLLM fetches the model: a path names a folder that is there."""
    return not spec.model.name.startswith("/")


def weights_volume_bytes(weights_bytes: int) -> int:
    """Size of a volume for weights of that size: a tenth more, at least 1 GiB, to a whole MiB.

    vLLM downloads the files that the checkpoint's index names, once, each beside its place and then moved
    (model_loader/weight_utils.py; huggingface_hub, file_download.py); hf_xet keeps no chunks by default.
    What comes on top is tokenizer, configurations and code, and what a broken download leaves behind.
    """
    return round_up(weights_bytes + max(GIB, ceil_div(weights_bytes, 10)), MIB)
