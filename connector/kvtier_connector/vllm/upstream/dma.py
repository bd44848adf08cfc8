"""vLLM's batched copies between a GPU and page-locked memory, and how memory is page-locked; needs CUDA."""

import torch
from vllm import _custom_ops as ops
from vllm.v1.kv_offload.cpu.host_register import host_register, host_unregister

__all__ = ["copy_batch", "host_register", "host_unregister"]


def copy_batch(
    sources: torch.Tensor, targets: torch.Tensor, sizes: torch.Tensor, *, any_source_order: bool
) -> None:
    """Queue copies between addresses, of sizes in bytes, on the current stream.

    In any source order, sources may be read before what the stream still has to do.
    """
    ops.swap_blocks_batch(sources, targets, sizes, is_src_access_order_any=any_source_order)
