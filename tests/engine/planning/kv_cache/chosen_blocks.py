"""Which block vLLM's own backend selection takes on each GPU, as JSON: run by test_chosen_blocks.py.

A build for the CPU has no kernels of a GPU. What it would import of them is put in place by modules that
have everything, and a platform that says it is CUDA of some architecture.
"""

import itertools
import json
import sys
import types
from collections.abc import MutableSequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any, Final
from unittest.mock import MagicMock

_OF_A_GPU: Final = (
    "flashinfer",
    "pynvml",
    "tokenspeed_mla",
    "vllm._C_stable_libtorch",
    "vllm._flashmla_C",
    "vllm._flashmla_extension_C",
    "vllm._moe_C_stable_libtorch",
    "vllm.third_party.flashmla",
    "vllm.vllm_flash_attn",
)
_MAJORS: Final = (8, 9, 10, 12)
_IMAGES: Final = "heads, over images in both directions"
_WIDE_IMAGES: Final = f"wide {_IMAGES}"
_CASES: Final = {
    "heads": (False, False, 128),
    "wide heads": (False, False, 512),
    _IMAGES: (False, False, 256),
    _WIDE_IMAGES: (False, False, 512),
    "MLA": (True, False, 576),
    "sparse MLA": (True, True, 576),
}
"""As planning.kv_cache.attention_backend.Attention names them: MLA, sparse, width of a head."""
_HEADS: Final = 128
_HOPPER: Final = 9
_BLOCKS: Final = (16, 32, 48, 64, 96, 128, 256)


class _Anything(types.ModuleType):
    __path__: MutableSequence[str] = []  # noqa: RUF012 - it is a package

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever is asked for
        if name.startswith("__"):
            raise AttributeError(name)
        value = MagicMock(name=name)
        setattr(self, name, value)
        return value


class _InPlaceOfKernels(MetaPathFinder, Loader):
    def find_spec(self, name: str, _path: object, _target: object = None) -> ModuleSpec | None:
        of_a_gpu = any(name == each or name.startswith(f"{each}.") for each in _OF_A_GPU)
        return ModuleSpec(name, self, is_package=True) if of_a_gpu else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return _Anything(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


_seen: dict[str, int] = {"major": 0}
"""The GPU that the platform says it is."""


def main() -> None:
    """Print, by what is kept, cache dtype and GPU: the block chosen, and each given one's first backend."""
    gpu = _gpu()
    from vllm.config import VllmConfig, set_current_vllm_config  # noqa: PLC0415 - after the platform

    config, model = VllmConfig(), MagicMock()
    model.hf_text_config = types.SimpleNamespace(
        qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, kv_lora_rank=512, index_topk=2048
    )
    model.get_num_attention_heads.return_value = model.get_num_kv_heads.return_value = _HEADS
    config.model_config = model
    answers = []
    with set_current_vllm_config(config):
        for kept, dtype, major in itertools.product(_CASES, ("auto", "fp8"), _MAJORS):
            _seen["major"] = major
            _, sparse, width = _CASES[kept]
            model.get_head_size.return_value = width
            config.cache_config.cache_dtype = dtype
            free = _valid(gpu, kept, dtype, None)
            if not free:
                continue
            backends = [free[0], *([_indexer()] if sparse else [])]
            taken = {block: _valid(gpu, kept, dtype, block) for block in _BLOCKS}
            answers.append(
                {
                    "kept": kept,
                    "fp8": dtype == "fp8",
                    "major": major,
                    "block": gpu._preferred_block_size_for_backends(backends, 16, config),
                    "taken": [block for block, found in taken.items() if found],
                    "first": [block for block, found in taken.items() if found[:1] == free[:1]],
                }
            )
    json.dump(answers, sys.stdout)


def _gpu() -> Any:  # noqa: ANN401 - vLLM publishes no types
    """Have vLLM take this machine for one with a GPU."""
    import vllm.platforms  # noqa: PLC0415 - what is put in place comes after

    sys.meta_path.insert(0, _InPlaceOfKernels())
    from vllm.platforms import cuda  # noqa: PLC0415
    from vllm.platforms.interface import DeviceCapability  # noqa: PLC0415
    from vllm.utils import flashinfer  # noqa: PLC0415

    class Gpu(cuda.CudaPlatformBase):  # type: ignore[misc]
        @classmethod
        def get_device_capability(cls, device_id: int = 0) -> Any:  # noqa: ANN401, ARG003
            return DeviceCapability(_seen["major"], 0)

        @classmethod
        def is_device_capability_family(cls, capability: int, device_id: int = 0) -> bool:  # noqa: ARG003
            return capability // 10 == _seen["major"]

    import_backend = cuda._get_attn_backend_class

    def backend_class(backend: Any) -> Any:  # noqa: ANN401
        try:
            return import_backend(backend)
        except (
            RuntimeError
        ) as error:  # CUTLASS_MLA takes GPU memory when it is imported; it is nobody's first
            raise ImportError(str(error)) from error

    cuda._get_attn_backend_class = backend_class
    vllm.platforms._current_platform = Gpu()
    from vllm.v1.attention.backends import fa_utils  # noqa: PLC0415

    fa_utils.flash_attn_supports_mla = lambda: _seen["major"] == _HOPPER
    flashinfer.has_flashinfer_sparse_mla_sm120 = lambda: True
    return Gpu


def _valid(gpu: Any, kept: str, dtype: str, block: int | None) -> list[Any]:  # noqa: ANN401
    """The backends that take it, the one that vLLM takes first."""
    import torch  # noqa: PLC0415
    from vllm.v1.attention.selector import AttentionSelectorConfig  # noqa: PLC0415

    latent, sparse, width = _CASES[kept]
    if sparse and block is not None and not _indexer().supports_block_size(block):
        return []
    asked = AttentionSelectorConfig(
        width, torch.bfloat16, dtype, block, use_mla=latent, use_sparse=sparse, use_kv_connector=True
    )._replace(use_mm_prefix=kept in {_IMAGES, _WIDE_IMAGES})
    found, _ = gpu.get_valid_backends(gpu.get_device_capability(), asked, num_heads=_HEADS)
    return [one.backend_class for one in sorted(found, key=lambda one: one.priority)]


def _indexer() -> Any:  # noqa: ANN401
    from vllm.v1.attention.backends.mla.indexer import DeepseekV32IndexerBackend  # noqa: PLC0415

    return DeepseekV32IndexerBackend


if __name__ == "__main__":
    main()
