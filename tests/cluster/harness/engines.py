"""A real vLLM and a model for pods without an image of 6 GB: the node shows containers this checkout's.

containerd begins each container's specification with these mounts (see `node.containerd`), so a pod is what
its Plan says, and its image has what kvtier's Containerfile puts there.
"""

import os
import shutil
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.cluster.harness.tools import Say, cache_folder

from kvtier_operator.runtime.demo.corpus import corpus
from kvtier_operator.runtime.demo.model import ModelShape, random_model

MODEL: Final = "kvtier/random-llama-76m"
HUB: Final = "/opt/kvtier-engine/hub"
_PACKAGES: Final = "/opt/kvtier-engine/site-packages"


def engine_mounts(say: Say) -> Mapping[Path, str]:
    """Folders of this machine and where containers see them: Python packages with vLLM, models."""
    return {Path(sysconfig.get_path("purelib")): _PACKAGES, _hub(say): HUB}


def model_environment() -> list[dict[str, str]]:
    """Variables of an engine, as a resource has them, with which it finds the model without a network."""
    return [{"name": "HF_HUB_CACHE", "value": HUB}, {"name": "HF_HUB_OFFLINE", "value": "1"}]


def model_geometry(shape: ModelShape) -> dict[str, int]:
    """What a resource says of a model that kvtier does not know."""
    return {"layers": shape.layers, "kvHeads": shape.kv_heads, "headDim": shape.head_dim, "dtypeBytes": 4}


def model_folder(say: Say) -> Path:
    """The model's own folder; it is made the first time."""
    return random_model(ModelShape(), corpus(), cache_folder(), say)


def _hub(say: Say) -> Path:
    """A folder as Hugging Face's cache is (huggingface_hub, file_download.py), with the random model."""
    made = model_folder(say)
    revision = made.name.rpartition("-")[2]
    hub = cache_folder() / "hub"
    model = hub / f"models--{MODEL.replace('/', '--')}"
    snapshot = model / "snapshots" / revision
    if not snapshot.exists():
        copying = model / f".copying-{os.getpid()}"
        shutil.copytree(made, copying)
        snapshot.parent.mkdir(exist_ok=True)
        copying.rename(snapshot)
    # an engine that locks no memory does not run as root
    for path in (snapshot, *snapshot.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (model / "refs").mkdir(exist_ok=True)
    (model / "refs" / "main").write_text(revision)
    return hub
