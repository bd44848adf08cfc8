"""How many matrices a model's layers have, and how wide it is between them."""

from typing import Final

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.model_shape.config.fields import ConfigFields
from kvtier_operator.planning.model_shape.layers.layer_parts import layer_parts

_OF_ATTENTION: Final = 4
"""Queries, keys, values, output; of a state about as many."""
_OF_AN_MLP: Final = 3


def hidden_size(config: ConfigFields) -> int | None:
    """From a config.json; None where it does not tell."""
    try:
        return config.optional_int("hidden_size", "n_embd", "d_model")
    except InvalidInputError:
        return None


def matrices(config: ConfigFields) -> int | None:
    """From a config.json, at most; None where it does not tell."""
    try:
        parts = layer_parts(config)
    except InvalidInputError:
        return None
    if parts is None:
        return None
    mlps = parts.dense + parts.sparse * (parts.experts + 1)  # one for what every token goes through
    return _OF_ATTENTION * (parts.attention + parts.states) + _OF_AN_MLP * mlps
