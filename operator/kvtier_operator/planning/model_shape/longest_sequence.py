"""The longest sequence that vLLM gives a model where nobody says one, and the longest that it takes."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kvtier_operator.planning.model_shape.config_fields import ConfigFields

# vLLM, transformers_utils/model_arch_config_convertor.py, derive_max_model_len_and_key.
_FIELDS: Final = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)
# Kinds of rotary scaling that max_position_embeddings holds already
# (vLLM, config/model.py, _get_and_verify_max_len).
_SCALED_ALREADY: Final = {
    *("su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling", "default", "mrope"),
}
_LONGROPE: Final = {"su", "longrope"}


def longest_sequence(config: ConfigFields) -> int | None:
    """Tokens; None where the file does not tell.

    `model_max_length` goes before the others (Command R), and of the others the smallest counts.
    """
    most = longest_taken(config)
    if most is not None and any(_kind(rope) in _LONGROPE for rope in _ropes(config)):
        return config.root_int("original_max_position_embeddings") or most
    return most


def longest_taken(config: ConfigFields) -> int | None:
    """Tokens above which vLLM does not start, whoever asks for them; None where the file does not tell."""
    tokens = config.optional_int("model_max_length") or min(
        (tokens for name in _FIELDS if (tokens := config.optional_int(name))), default=None
    )
    if tokens is None:
        return None
    if "gemma3" in config.root_text("model_type"):  # scaled already
        return tokens
    factors = [rope.get("factor") for rope in _ropes(config) if _kind(rope) not in _SCALED_ALREADY]
    factor = next((each for each in reversed(factors) if isinstance(each, int | float)), 1)
    return int(tokens * factor)


def _ropes(config: ConfigFields) -> Iterator[Mapping[str, Any]]:
    """Rotary settings of the whole file: one, or one for each kind of layer."""
    settings = config.root_mapping("rope_parameters", "rope_scaling")
    if all(isinstance(each, Mapping) for each in settings.values()):
        yield from settings.values()
    else:
        yield settings


def _kind(rope: Mapping[str, Any]) -> object:
    return rope.get("rope_type", rope.get("type"))
