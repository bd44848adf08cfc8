"""Of which parts a model's layers are made: attention or a state, and an MLP or experts."""

from dataclasses import dataclass
from typing import Final

from kvtier_operator.planning.model_shape.config.fields import ConfigFields
from kvtier_operator.planning.model_shape.layers.layer_kinds import layer_kinds
from kvtier_operator.planning.model_shape.shape import LayerKind

_LETTERS: Final = {"*": "attention", "M": "mamba", "-": "mlp", "E": "moe"}
"""Of Nemotron's `hybrid_override_pattern`."""
_ALONE: Final = {"mlp", "moe"}


@dataclass(frozen=True, slots=True)
class LayerParts:
    """How many layers have each part.

    Attributes:
        layers: All.
        attention: With attention.
        states: With a state.
        dense: With an MLP.
        sparse: With experts.
        experts: Of each of these; 0 without any.
    """

    layers: int
    attention: int
    states: int
    dense: int
    sparse: int
    experts: int


def layer_parts(config: ConfigFields) -> LayerParts | None:
    """From a config.json whose layers can be sized; None where layers differ in more than these parts."""
    if config.has("block_configs"):
        return None
    experts = (
        config.int_in_file("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts") or 0
    )
    names = config.strings("layers_block_type") or tuple(
        _LETTERS.get(letter, letter) for letter in config.text("hybrid_override_pattern")
    )
    if _ALONE & set(names):  # Nemotron: each block is one part
        return LayerParts(
            layers=len(names),
            attention=names.count("attention"),
            states=names.count("mamba"),
            dense=names.count("mlp"),
            sparse=names.count("moe"),
            experts=experts,
        )
    layers = config.optional_int("num_hidden_layers", "n_layer", "n_layers")
    if not layers:
        return None
    kinds = layer_kinds(config)
    states = kinds.count(LayerKind.STATE)
    sparse = _sparse(config, layers) if experts else 0
    # of Gemma 3n the last layers keep nothing, of Falcon-H1 each has both
    attention = max(layers - states, len(kinds) - states)
    return LayerParts(layers, attention, states, layers - sparse, sparse, experts)


def _sparse(config: ConfigFields, layers: int) -> int:
    """Layers with experts: after the first ones all, or one of so many, but those that are named."""
    first = config.int_in_file("first_k_dense_replace") or 0
    step = config.int_in_file(
        *("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_freq", "expert_layer_period")
    )
    named = config.get("mlp_only_layers")
    return max((layers - first) // (step or 1) - (len(named) if isinstance(named, list) else 0), 0)
