"""Environment variables of vLLM's name that no vLLM reads, and what took their place."""

from typing import Final

from kvtier_operator.planning.arguments.serve_options import variables_read

PREFIX: Final = "VLLM_"
_NEAR: Final = 0.85
_IN_ITS_PLACE: Final = {
    "VLLM_ALL2ALL_BACKEND": "--all2all-backend",
    "VLLM_ATTENTION_BACKEND": "--attention-backend",
    "VLLM_CPU_MOE_PREPACK": "",
    "VLLM_CPU_SGL_KERNEL": "",
    "VLLM_DISABLE_FLASHINFER_PREFILL": "--attention-config.mla_prefill_backend",
    "VLLM_ENABLE_MOE_DP_CHUNK": "",
    "VLLM_ENGINE_ITERATION_TIMEOUT_S": "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS",
    "VLLM_FLASHINFER_DISABLE_Q_QUANTIZATION": "--attention-config.disable_flashinfer_q_quantization",
    "VLLM_FLASHINFER_MOE_BACKEND": "--moe-backend",
    "VLLM_FLASH_ATTN_VERSION": "--attention-config.flash_attn_version",
    "VLLM_FUSED_MOE_CHUNK_SIZE": "",
    "VLLM_HOST_PORT": "",
    "VLLM_MM_INPUT_CACHE_GIB": "--mm-processor-cache-gb",
    "VLLM_MOE_DP_CHUNK_SIZE": "",
    "VLLM_MULTIMODAL_TENSOR_IPC": "--mm-tensor-ipc",
    "VLLM_MXFP4_USE_MARLIN": "--moe-backend, --linear-backend",
    "VLLM_NO_DEPRECATION_WARNING": "",
    "VLLM_NVFP4_GEMM_BACKEND": "--linear-backend",
    "VLLM_PREFIX_CACHE_RETENTION_INTERVAL": "--prefix-cache-retention-interval",
    "VLLM_ROCM_USE_AITER_ROPE": "VLLM_ROCM_USE_AITER_TRITON_ROPE",
    "VLLM_RPC_TIMEOUT": "",
    "VLLM_SLEEP_WHEN_IDLE": "",
    "VLLM_TORCH_PROFILER_DIR": "--profiler-config.torch_profiler_dir",
    "VLLM_TORCH_PROFILER_WITH_STACK": "--profiler-config.torch_profiler_with_stack",
    "VLLM_TQ_DECODE_V3": "",
    "VLLM_USE_CUDNN_PREFILL": "--attention-config.mla_prefill_backend",
    "VLLM_USE_FLASHINFER_MOE_FP16": "--moe-backend",
    "VLLM_USE_FLASHINFER_MOE_FP4": "--moe-backend",
    "VLLM_USE_FLASHINFER_MOE_FP8": "--moe-backend",
    "VLLM_USE_RAY_COMPILED_DAG": "",
    "VLLM_USE_RAY_SPMD_WORKER": "",
    "VLLM_USE_TRITON_FLASH_ATTN": "--attention-backend",
    "VLLM_USE_TRTLLM_ATTENTION": "--attention-config.use_trtllm_attention",
    "VLLM_USE_TRTLLM_RAGGED_DEEPSEEK_PREFILL": "--attention-config.mla_prefill_backend",
    "VLLM_USE_V1": "",
    "VLLM_V0_USE_OUTLINES_CACHE": "VLLM_V1_USE_OUTLINES_CACHE",
}
"""What took the place of variables that earlier versions read; empty where nothing did."""


def unread(name: str, minors: tuple[int, ...]) -> str | None:
    """What to do about a variable that none of these minors reads; None for one that is read.

    Args:
        name: The variable's.
        minors: Of vLLM.
    """
    known = frozenset().union(*(variables_read(minor) for minor in minors))
    if not name.startswith(PREFIX) or name in known:
        return None
    if instead := _IN_ITS_PLACE.get(name):
        return f"set {instead}" + (" in spec.engine.extraArgs" if instead.startswith("--") else "")
    # 5 ms to import: not for those who need it not
    from difflib import get_close_matches  # noqa: PLC0415

    near = [] if name in _IN_ITS_PLACE else get_close_matches(name, known, n=1, cutoff=_NEAR)
    return f"set {near[0]}, if that is meant" if near else "remove it"
