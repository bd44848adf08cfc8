"""What the model's weights and LoRA adapters take of devices and memory, and how many a token passes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.command_line import whole_of
from kvtier_operator.api.spec.engine import EngineSpec
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.model_shape.shape import Arithmetic
from kvtier_operator.planning.units import ceil_div, many, size
from kvtier_operator.planning.weights.offloading import offloading

_QUANTIZATION: Final = ("--quantization", "--quantization-config")
BALANCED: Final = "--enable-eplb"
BALANCER: Final = "--eplb-config"
COPIES: Final = "num_redundant_experts"
_WHOLE: Final = Fraction(1)
_ONLINE: Final[Mapping[str, Fraction]] = {
    "fp8": Fraction(1, 2),
    "fp8_per_tensor": Fraction(1, 2),
    "fp8_per_block": Fraction(1, 2),
    "fp8_per_channel": Fraction(1, 2),
    "mxfp8": Fraction(33, 64),
    "mxfp4": Fraction(17, 64),
}
"""What is left of 16 bits, by method, where a checkpoint is not quantised (vLLM 0.32 and 0.33,
config/quantization.py, _ONLINE_SHORTHANDS; layers/quantization/fp8.py)."""
_LEAST: Final = Fraction(1, 4)


@dataclass(frozen=True, slots=True)
class RankWeights:
    """Bytes of weights on one GPU."""

    least_bytes: int  # where a plan cannot know, the least that it can be
    most_bytes: int  # and the most; the same where it is known

    @property
    def known(self) -> bool:
        """Whether a plan can know it."""
        return self.least_bytes == self.most_bytes


def rank_weights(engine: EngineSpec, geometry: Geometry) -> RankWeights | None:
    """What one GPU holds of the weights; None where their size is not known.

    Routed experts are divided over all GPUs of a pod, with expert parallelism and without (layers/fused_moe/
    config.py, flatten_tp_across_dp_and_pcp); the rest is on every data-parallel engine.
    """
    weights, experts = geometry.weights_bytes, geometry.experts_bytes
    if weights is None:
        return None
    ranks, engines = engine.tensor_parallel_size, engine.data_parallel_size
    least, most = _remaining_shares(engine, geometry)
    if engines > 1 and experts is None:
        held = RankWeights(ceil(weights * least / (ranks * engines)), ceil(weights * most / ranks))
    else:
        shared = experts or 0 if engines > 1 else 0
        copies = (experts or 0) * _copied_share(engine, geometry)
        of_rank = Fraction(weights - shared, ranks) + (shared + copies) / (ranks * engines)
        held = RankWeights(ceil(of_rank * least), ceil(of_rank * most))
    # whole layers up to a bound are elsewhere
    return replace(held, least_bytes=0) if offloading(engine.extra_args) else held


def _copied_share(engine: EngineSpec, geometry: Geometry) -> Fraction:
    """What part of the experts is in memory twice (config/parallel.py, EPLBConfig)."""
    line, experts = engine.extra_args, geometry.shape.expert_count
    copies = whole_of(line.json_object(BALANCER).get(COPIES)) or 0
    return Fraction(max(0, copies), experts) if line.is_on(BALANCED) and experts else Fraction(0)


def online_quantization(engine: EngineSpec, geometry: Geometry) -> str:
    """The method that vLLM quantises the weights by as it loads them; empty where it does not."""
    if geometry.shape.is_quantised:
        return ""
    return next((value for name in _QUANTIZATION if (value := engine.extra_args.value(name))), "")


def _remaining_shares(engine: EngineSpec, geometry: Geometry) -> tuple[Fraction, Fraction]:
    """The least and the most that is left of the checkpoint's bytes."""
    method = online_quantization(engine, geometry)
    if not method:
        return _WHOLE, _WHOLE
    left = _ONLINE.get(method, _LEAST)
    certain = method in _ONLINE and geometry.shape.is_quantised is False
    return left, left if certain else _WHOLE


def active_parameters(geometry: Geometry) -> Arithmetic | None:
    """From the model's configuration, else as if all of its weights computed; None where nothing tells."""
    if geometry.shape.arithmetic is not None:
        return geometry.shape.arithmetic
    if geometry.weights_bytes is None:
        return None
    bytes_per_parameter = geometry.shape.parameter_bits / _BITS_PER_BYTE
    parameters = int(geometry.weights_bytes / bytes_per_parameter)
    return Arithmetic(
        parameters,
        f"{size(geometry.weights_bytes)} of weights / {bytes_per_parameter:g} B, all for every token",
    )


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
    """How many adapters vLLM has room for (config/lora.py, LoRAConfig)."""

    at_once: int  # in one batch: on the GPU
    in_memory: int  # in the host's memory
    rank: int  # the largest rank of one


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
    is_sized = spec.engine.extra_args.number(IN_MEMORY) is not None
    in_memory = () if is_sized else (IN_MEMORY, str(adapters.in_memory))
    return (ENABLE, *in_memory, "--lora-modules", *(f"{module.name}={module.source}" for module in modules))


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
