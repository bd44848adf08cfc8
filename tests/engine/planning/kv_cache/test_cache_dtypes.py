"""The planner's table of KV cache dtypes beside vLLM's own: names, bytes, and who keeps which."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args

import pytest

from kvtier_operator.api.spec.engine import KVCacheDtype
from kvtier_operator.planning.checks.cache_format import KEPT, CacheKind, Maker
from kvtier_operator.planning.kv_cache.split import cell_bytes

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

# Of 0.33 alone, and kept by an AMD GPU's backend alone.
_NEWER: Final = {"octave_k3v4", "octave_k3v3", "octave_k3v3_compact"}
_LATENT_DIM: Final = 576


def test_names() -> None:
    from vllm.config.cache import CacheDType  # noqa: PLC0415 - takes seconds

    assert set(get_args(CacheDType)) - _NEWER == {dtype.value for dtype in KVCacheDtype}


@pytest.mark.parametrize("dtype", [each for each in KVCacheDtype if not each.endswith("ds_mla")])
@pytest.mark.parametrize("head_dim", [64, 96, 128, 256])
def test_bytes_of_a_head(dtype: KVCacheDtype, head_dim: int) -> None:
    assert cell_bytes(dtype, head_dim, head_dim, 2) == _bytes_of_a_head(dtype.value, head_dim)


@pytest.mark.parametrize("dtype", [*KEPT[Maker.NVIDIA, CacheKind.SPARSE_LATENT], KVCacheDtype.AUTO])
def test_bytes_of_a_latent(dtype: KVCacheDtype) -> None:
    import torch  # noqa: PLC0415 - takes seconds
    from vllm.model_executor.layers.attention.mla_attention import MLAAttention  # noqa: PLC0415 - as above

    class Layer:
        """What get_kv_cache_spec reads of a layer."""

        kv_cache_dtype, head_size, sliding_window = dtype.value, _LATENT_DIM, None

        def __getattr__(self, name: str) -> None:
            """Of the rest, which the size does not depend on."""

    class Config:
        """What it reads of the engine's configuration."""

        class cache_config:  # noqa: N801 - vLLM's name
            block_size = 64

        class model_config:  # noqa: N801 - as above
            dtype = torch.bfloat16

    spec = MLAAttention.get_kv_cache_spec(Layer(), Config())
    assert spec.page_size_bytes == 64 * cell_bytes(dtype, _LATENT_DIM, 0, 2)


@pytest.mark.parametrize("kind", list(CacheKind))
def test_who_keeps_which_on_an_nvidia_gpu(kind: CacheKind) -> None:
    assert {dtype.value for dtype in KEPT[Maker.NVIDIA, kind]} | {"auto"} == set(_kept_by_cuda(kind))


def test_who_keeps_which_on_a_cpu() -> None:
    from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend  # noqa: PLC0415 - takes seconds

    said = set(CPUAttentionBackend.supported_kv_cache_dtypes) - {"auto"}
    # A CPU's backend is not asked before it is taken; 16 bits are what the model computes in.
    assert {dtype.value for dtype in KEPT[Maker.CPU, CacheKind.HEADS]} == said | {"float16", "bfloat16"}


def _bytes_of_a_head(dtype: str, head_dim: int) -> int:
    """vLLM's answer: its backends' own arithmetic, as a build for the CPU lacks what imports most of them."""
    import torch  # noqa: PLC0415 - takes seconds
    from vllm.model_executor.layers.quantization.turboquant.config import TurboQuantConfig  # noqa: PLC0415
    from vllm.utils.torch_utils import (  # noqa: PLC0415 - as above
        STR_DTYPE_TO_TORCH_DTYPE,
        nvfp4_kv_cache_full_dim,
    )
    from vllm.v1.attention.backends.triton_attn import TritonAttentionBackend  # noqa: PLC0415 - as above
    from vllm.v1.attention.ops.ultraquant.format import slot_size  # noqa: PLC0415 - as above
    from vllm.v1.kv_cache_interface import FullAttentionSpec, get_kv_quant_mode  # noqa: PLC0415 - as above

    if dtype.startswith("turboquant"):
        return int(TurboQuantConfig.from_cache_dtype(dtype, head_dim).slot_size_aligned)
    if dtype.startswith("ultraquant"):
        return int(slot_size(head_dim))
    if dtype.startswith("nvfp4"):
        return 2 * int(nvfp4_kv_cache_full_dim(head_dim))
    spec: Any = FullAttentionSpec(
        block_size=1,
        num_kv_heads=1,
        head_size=head_dim,
        dtype=STR_DTYPE_TO_TORCH_DTYPE.get(dtype, torch.bfloat16),
        kv_quant_mode=get_kv_quant_mode(dtype),
    )
    return int(TritonAttentionBackend.customize_spec(spec).page_size_bytes)


def _kept_by_cuda(kind: CacheKind) -> Iterator[str]:
    """Dtypes of the backends that vLLM chooses from on one capability or another, read of its sources."""
    from vllm.v1.attention.backends.registry import AttentionBackendEnum  # noqa: PLC0415 - takes seconds

    folder = _vllm()
    chosen = ast.parse((folder / "platforms/cuda.py").read_text(encoding="utf-8"))
    [choice] = [
        node
        for node in ast.walk(chosen)
        if isinstance(node, ast.FunctionDef) and node.name == "_get_backend_priorities"
    ]
    names = {
        node.attr
        for node in ast.walk(choice)
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "AttentionBackendEnum"
    }
    for name in names:
        module, _, backend = str(AttentionBackendEnum[name].value).rpartition(".")
        path = module.removeprefix("vllm.").replace(".", "/")
        sparse_latent, latent = "sparse" in path, "/mla/" in path
        own = CacheKind.SPARSE_LATENT if sparse_latent else CacheKind.LATENT if latent else CacheKind.HEADS
        if own is kind:
            yield from _said(ast.parse((folder / f"{path}.py").read_text(encoding="utf-8")), backend)


def _said(module: ast.Module, backend: str) -> set[str]:
    """A class's `supported_kv_cache_dtypes`, or those of what it is made of."""
    classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
    if backend not in classes:
        return set()
    for node in classes[backend].body:
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "supported_kv_cache_dtypes":
            return set(ast.literal_eval(node.value)) if node.value else set()
    return set().union(*(_said(module, getattr(base, "id", "")) for base in classes[backend].bases))


def _vllm() -> Path:
    import vllm  # noqa: PLC0415 - takes seconds

    return Path(vllm.__file__).parent
