"""A real vLLM and models for pods without an image of 6 GB: the node shows containers this checkout's.

containerd begins each container's specification with these mounts (see `node.containers.containerd`), so a
pod is what its Plan says. What is mounted has no more than vLLM's image, so nothing of kvtier.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.cluster.harness.images.vllm_packages import vllm_packages
from tests.cluster.harness.programs.locked import lock
from tests.cluster.harness.programs.tools import Say, cache_folder

from kvtier_operator.runtime.demo.prompts import ModelShape, corpus, random_model

HUB: Final = "/opt/vllm/hub"
VLLM_PACKAGES: Final = "/opt/vllm/site-packages"


@dataclass(frozen=True, slots=True)
class RandomModel:
    """A Llama with random weights, and what a resource calls it."""

    name: str
    shape: ModelShape


DEMO_MODEL: Final = RandomModel("kvtier/random-llama-76m", ModelShape())
SMALL_MODEL: Final = RandomModel(
    "kvtier/random-llama-3m", replace(ModelShape(), hidden_size=128, intermediate_size=256, heads=2)
)
"""As much KV cache a token as the demo's, and hardly anything to compute."""


def engine_mounts(say: Say) -> Mapping[Path, str]:
    """Folders of this machine and where containers see them: Python packages with vLLM, models."""
    with lock(cache_folder() / ".hub.lock"):  # another test run may be making the same
        for model in (DEMO_MODEL, SMALL_MODEL):
            _put_into_hub(model, say)
    return {vllm_packages(say): VLLM_PACKAGES, _hub(): HUB}


def model_environment() -> list[dict[str, str]]:
    """Variables of an engine, as a resource has them, with which it finds the model without a network."""
    return [{"name": "HF_HUB_CACHE", "value": HUB}, {"name": "HF_HUB_OFFLINE", "value": "1"}]


def model_geometry(shape: ModelShape) -> dict[str, int]:
    """What a resource says of a model that kvtier does not know."""
    return {"layers": shape.layers, "kvHeads": shape.kv_heads, "headDim": shape.head_dim, "dtypeBytes": 4}


def model_folder(model: RandomModel, say: Say) -> Path:
    """The model's own folder; it is made the first time."""
    return random_model(model.shape, corpus(), cache_folder(), say)


def _hub() -> Path:
    """A folder as Hugging Face's cache is (huggingface_hub, file_download.py)."""
    return cache_folder() / "hub"


def _put_into_hub(model: RandomModel, say: Say) -> None:
    made = model_folder(model, say)
    revision = made.name.rpartition("-")[2]
    folder = _hub() / f"models--{model.name.replace('/', '--')}"
    snapshot = folder / "snapshots" / revision
    if not snapshot.exists():
        copying = folder / f".copying-{os.getpid()}"
        shutil.copytree(made, copying)
        snapshot.parent.mkdir(exist_ok=True)
        copying.rename(snapshot)
    # an engine that need not lock its memory does not run as root
    for path in (snapshot, *snapshot.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (folder / "refs").mkdir(exist_ok=True)
    (folder / "refs" / "main").write_text(revision)
