"""The attention backend that spec.engine.extraArgs name, in place of vLLM's choice."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from kvtier_operator.api.spec.command_line import CommandLine

_OPTION: Final = "--attention-backend"
_CONFIG: Final = ("--attention-config", "-ac")
OPTIONS: Final = (_OPTION, *_CONFIG)


class Attention(StrEnum):
    """What a model's attention layers keep, as far as backends differ by it."""

    HEADS = "heads"  # and MLA latents of a width that TRITON_MLA alone takes
    IMAGE_HEADS = "heads, over images in both directions"
    WIDE_IMAGE_HEADS = "wide heads, over images in both directions"
    SPARSE_HEADS = "sparse heads"
    LATENT = "MLA"
    SPARSE_LATENT = "sparse MLA"

    @property
    def of_backends(self) -> "Attention":
        """What a backend for it is for."""
        images = self in {Attention.IMAGE_HEADS, Attention.WIDE_IMAGE_HEADS}
        return Attention.HEADS if images else self


BACKENDS: Final[Mapping[str, tuple[Attention, int]]] = {
    "FLASH_ATTN": (Attention.HEADS, 16),
    "FLASHINFER": (Attention.HEADS, 16),
    "TRITON_ATTN": (Attention.HEADS, 16),
    "TRITON_FLASH_ATTN": (Attention.HEADS, 16),
    "TRITON_FLASHINFER": (Attention.HEADS, 64),
    "FLEX_ATTENTION": (Attention.HEADS, 16),
    "B12X": (Attention.HEADS, 128),
    "HPC_ATTN": (Attention.HEADS, 64),
    "TRITON_MLA": (Attention.LATENT, 16),
    "FLASH_ATTN_MLA": (Attention.LATENT, 16),
    "FLASHINFER_MLA": (Attention.LATENT, 32),
    "TOKENSPEED_MLA": (Attention.LATENT, 32),
    "FLASHMLA": (Attention.LATENT, 64),
    "CUTLASS_MLA": (Attention.LATENT, 128),
    # beside the indexer's backend, which takes 64 and nothing less
    "FLASHINFER_MLA_SPARSE": (Attention.SPARSE_LATENT, 64),
    "FLASHINFER_MLA_SPARSE_SM90": (Attention.SPARSE_LATENT, 64),
    "FLASHINFER_MLA_SPARSE_SM120": (Attention.SPARSE_LATENT, 64),
    "FLASHMLA_SPARSE": (Attention.SPARSE_LATENT, 64),
    "FLASH_ATTN_MLA_SPARSE": (Attention.SPARSE_LATENT, 64),
}
"""NVIDIA's, by name: what a model must keep for it, and the block that vLLM takes with it."""


def named_backend(command_line: CommandLine) -> str:
    """Name of the backend; empty where vLLM chooses.

    Raises:
        InvalidInputError: vLLM would refuse what says it.
    """
    name: object = command_line.value(_OPTION)
    for option in _CONFIG:
        name = name or command_line.json_object(option).get("backend")
    return str(name or "").upper()
