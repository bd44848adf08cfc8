"""vLLM's batched copies between a GPU and page-locked memory, and how memory is page-locked; needs CUDA."""

import ctypes
from typing import Final, NamedTuple

import torch
from vllm import _custom_ops as ops
from vllm.triton_utils import HAS_TRITON
from vllm.v1.kv_offload.cpu.host_register import host_register, host_unregister
from vllm.v1.kv_offload.cpu.swap_blocks_triton import THRESHOLD_BYTES, swap_blocks_batch

__all__ = [
    "KERNEL_BELOW_BYTES",
    "Descriptors",
    "copy_batch",
    "copy_by_kernel",
    "copy_singly",
    "host_register",
    "host_unregister",
]

KERNEL_BELOW_BYTES: Final[int] = THRESHOLD_BYTES if HAS_TRITON else 0
"""Smaller pieces of page-locked memory are read faster by vLLM's kernel than by the copy engine.

Source: vLLM 0.32 and 0.33, v1/kv_offload/cpu/gpu_worker.py (_select_swap_blocks_fn).
"""


class Descriptors(NamedTuple):
    """Copies between addresses, of sizes in bytes: int64, one entry per copy."""

    sources: torch.Tensor
    targets: torch.Tensor
    sizes: torch.Tensor


def copy_batch(copies: Descriptors, *, any_source_order: bool) -> None:
    """Queue copies on the current stream in one call.

    In any source order, sources may be read before what the stream still has to do.
    """
    ops.swap_blocks_batch(*copies, is_src_access_order_any=any_source_order)


def copy_by_kernel(copies: Descriptors, *, chunk_bytes: int) -> None:
    """Queue copies from page-locked memory, of multiples of 8 bytes, on the current stream.

    `chunk_bytes`, a power of two, is what the kernel copies at a time; it is compiled for each.
    """
    swap_blocks_batch(*copies, is_src_access_order_any=True, bytes_per_chunk=chunk_bytes)


def copy_singly(copies: Descriptors) -> None:
    """Queue copies from the host to the device on the current stream, each as PyTorch copies a tensor."""
    for source, target, size in zip(*(column.tolist() for column in copies), strict=True):
        on_host = torch.frombuffer((ctypes.c_uint8 * size).from_address(source), dtype=torch.uint8)
        torch.as_tensor(_OnDevice(target, size), device="cuda").copy_(on_host, non_blocking=True)


class _OnDevice:
    """Memory of the device at an address, for the CUDA array interface, version 3."""

    def __init__(self, address: int, size_bytes: int) -> None:
        self.__cuda_array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "data": (address, False),
            "shape": (size_bytes,),
        }
