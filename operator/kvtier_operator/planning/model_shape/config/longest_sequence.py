"""The longest sequence that vLLM gives a model where nobody says one, and the longest that it takes."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kvtier_operator.api.schema.complaints import show_value
from kvtier_operator.planning.model_shape.config.fields import ConfigFields

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
_ROPES: Final = ("rope_parameters", "rope_scaling")  # the first that is there counts
_MOST_FACTOR: Final = 10_000


def longest_sequence(config: ConfigFields) -> int | None:
    """Tokens; None where the file does not tell.

    `model_max_length` goes before the others (Command R), and of the others the smallest counts.
    """
    most = longest_taken(config)
    if most is not None and any(_kind(rope) in _LONGROPE for _, rope in _ropes(config)):
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
    ropes = _ropes(config)
    factors = [_factor(config, name, rope) for name, rope in ropes if _kind(rope) not in _SCALED_ALREADY]
    return int(tokens * next((each for each in reversed(factors) if each is not None), 1))


def _ropes(config: ConfigFields) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Rotary settings of the whole file by their field: one, or one for each kind of layer."""
    for name in _ROPES:
        settings = config.root_mapping(name)
        if all(isinstance(each, Mapping) for each in settings.values()):
            yield from ((f"{name}.{kind}", each) for kind, each in settings.items())
        else:
            yield name, settings
        if settings:
            return


def _factor(config: ConfigFields, name: str, rope: Mapping[str, Any]) -> float | None:
    """What a sequence is stretched by; None where these settings do not say it."""
    factor = rope.get("factor")
    if factor is None:
        return None
    is_number = isinstance(factor, int | float) and not isinstance(factor, bool)
    if not is_number or not 0 < factor <= _MOST_FACTOR:  # NaN is in no range
        raise config.wrong(
            f"{name}.factor",
            f"got {show_value(factor)}, must be a number above 0 and at most {_MOST_FACTOR:,}",
        )
    return float(factor)


def _kind(rope: Mapping[str, Any]) -> object:
    return rope.get("rope_type", rope.get("type"))
