"""What LoRA adapters take: room on each GPU from the start on, and copies in the host's memory."""

from dataclasses import dataclass
from typing import Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.units import ceil_div, many, size

ENABLE: Final = "--enable-lora"
AT_ONCE: Final = "--max-loras"
IN_MEMORY: Final = "--max-cpu-loras"
RANK: Final = "--max-lora-rank"
_DEFAULT_AT_ONCE: Final = 1
_DEFAULT_RANK: Final = 16
_ELEMENT_BYTES: Final = 2
"""Of the model's own dtype (vLLM's --lora-dtype auto)."""
_BITS_PER_BYTE: Final = 8


@dataclass(frozen=True, slots=True)
class Adapters:
    """How many adapters vLLM has room for (config/lora.py, LoRAConfig).

    Attributes:
        at_once: In one batch: on the GPU.
        in_memory: In the host's memory.
        rank: The largest rank of one.
    """

    at_once: int
    in_memory: int
    rank: int


@dataclass(frozen=True, slots=True)
class AdapterBytes:
    """What they take of one rank of the model: on its GPU, and in the host's memory."""

    gpu: int
    host: int


def adapters_of(spec: Spec) -> Adapters | None:
    """Room for adapters as vLLM has it; None where it takes none."""
    words, modules = spec.engine.extra_args, spec.model.lora_modules
    if not modules and not words.is_on(ENABLE):
        return None
    # what vLLM would end at is planned as its default, and refused by the check of adapters
    at_once = max(words.number(AT_ONCE) or 0, _DEFAULT_AT_ONCE)
    in_memory = max(words.number(IN_MEMORY) or 0, 0)
    return Adapters(
        at_once=at_once,
        in_memory=in_memory or max(at_once, len(modules)),
        rank=words.number(RANK) or _DEFAULT_RANK,
    )


def adapter_args(spec: Spec) -> tuple[str, ...]:
    """VLLM's arguments for the resource's adapters, which all stay in the host's memory."""
    adapters, modules = adapters_of(spec), spec.model.lora_modules
    if adapters is None or not modules:
        return ()
    given = spec.engine.extra_args.number(IN_MEMORY) is not None
    in_memory = () if given else (IN_MEMORY, str(adapters.in_memory))
    return (ENABLE, *in_memory, "--lora-modules", *(f"{each.name}={each.source}" for each in modules))


def adapter_bytes(spec: Spec, geometry: Geometry) -> AdapterBytes | None:
    """An estimate, from above; None where the model's sizes do not tell it.

    Every matrix gets room for two narrow ones for each adapter, also those that an adapter leaves alone
    (vllm/lora/layers, create_lora_weights). One side of a matrix is the hidden size, which each rank has
    whole; the other sides are the parameters over the hidden size, which ranks divide.
    """
    adapters, weights = adapters_of(spec), geometry.weights_bytes
    if adapters is None:
        return AdapterBytes(0, 0)
    if weights is None or not geometry.shape.hidden_size or geometry.shape.matrices is None:
        return None
    whole = geometry.shape.matrices * geometry.shape.hidden_size
    divided = ceil_div(weights * _BITS_PER_BYTE, geometry.shape.parameter_bits * geometry.shape.hidden_size)
    one = adapters.rank * _ELEMENT_BYTES
    return AdapterBytes(
        gpu=adapters.at_once * one * (whole + ceil_div(divided, spec.engine.tensor_parallel_size)),
        host=adapters.in_memory * one * (whole + divided),
    )


def adapter_notes(spec: Spec, geometry: Geometry) -> tuple[str, ...]:
    """What a reader of the report should know of them."""
    adapters, taken = adapters_of(spec), adapter_bytes(spec, geometry)
    if adapters is None or taken is None:
        return ()
    return (
        (
            f"room for {many(adapters.at_once, 'LoRA adapter')} of rank {adapters.rank} takes about "
            f"{size(taken.gpu)} of each GPU, {adapters.in_memory} in the host's memory about "
            f"{size(taken.host)} a rank"
        ),
    )
