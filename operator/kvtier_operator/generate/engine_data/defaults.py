"""defaults.json: what the engine reads into a config.json that leaves it out.

The values stand in the configuration classes of transformers and vLLM, by model type, and both are too
large to import for a plan. So they are written down here, and compared wherever both are installed. Which of
them follow from others is found by making a configuration again with each changed.
"""

import inspect
import json
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from typing import Any, Final

from kvtier_operator.generate.engine_data.architectures import PACKAGES, word_lines
from kvtier_operator.generate.engine_data.config_classes import config_of
from kvtier_operator.generate.engine_data.read_once import read_once, works_out_head_dim
from kvtier_operator.generate.engine_data.serve_options import json_lines
from kvtier_operator.generate.engine_data.upstream import config_classes, sources

_FACTORS: Final = (2, 4)
# In place of what is None: a number that divides most others.
_INSTEAD_OF_NONE: Final = 4
# Two lengths that share no divisor: a list that repeats itself in both does so in all.
_LENGTHS: Final = (48, 61)
_LONGEST_PERIOD: Final = 16
DEFAULTS: Final = "operator/kvtier_operator/planning/model_shape/config/engine_data/defaults.json"
# What a plan may read of a config.json, by the names of the classes' attributes.
_FIELDS: Final = (
    *("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "hidden_size", "head_dim"),
    *("intermediate_size", "max_position_embeddings", "v_head_dim", "dtype"),
    *("kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "qk_head_dim"),
    *("index_head_dim", "index_n_heads", "index_topk", "index_topk_freq", "index_skip_topk_offset"),
    *("sliding_window", "sliding_window_pattern", "use_sliding_window", "max_window_layers"),
    *("attention_chunk_size", "global_head_dim", "num_global_key_value_heads", "attention_k_eq_v"),
    *("num_kv_shared_layers", "num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers"),
    *("linear_conv_kernel_dim", "linear_key_head_dim", "linear_value_head_dim", "linear_head_dim"),
    *("linear_num_key_heads", "linear_num_value_heads", "linear_num_heads", "full_attention_interval"),
    *("mamba_n_heads", "mamba_d_head", "mamba_d_state", "mamba_d_conv", "mamba_expand", "mamba_n_groups"),
    *("mamba_num_heads", "mamba_head_dim", "ssm_state_size", "conv_kernel", "conv_kernel_size", "n_groups"),
    *("num_heads", "state_size", "expand", "time_step_rank", "mamba_dt_rank", "mamba_d_ssm"),
    *("mamba_ssm_cache_dtype", "mamba_ssm_dtype", "lru_width", "conv1d_width", "attention_window_size"),
    *("conv_L_cache", "attn_layer_period", "attn_layer_offset", "attention_head_dim", "kv_channels"),
    *("global_attn_every_n_layers", "num_dense_layers", "layer_group_size", "block_size", "n_mamba_heads"),
    *("multi_query", "new_decoder_architecture", "is_encoder_decoder", "num_lora_adapters", "rwkv_head_dim"),
)
# Names under which a class nests its language model.
_NESTED: Final = ("text_config", "llm_config", "language_config", "thinker_config", "decoder")


@dataclass(frozen=True, slots=True)
class Derived:
    """What follows from what."""

    moved: frozenset[str]  # fields whose value another one decides
    other_names: Mapping[str, str]  # parameter by field that is the same number under another name


def derive(cls: Any, fields: Collection[str], value_of: Callable[[Any, str], Any]) -> Derived:  # noqa: ANN401 - as above
    """What of these fields follows from the others, or from parameters that are none of them."""
    config = config_of(cls)
    own = {name: value_of(config, name) for name in fields}
    moved: set[str] = set()
    copies: dict[str, set[str]] = {}
    for parameter, numbers in _changes(cls, config):
        names = cls.attribute_map
        itself = {parameter, names.get(parameter), *(name for name in names if names[name] == parameter)}
        for number in numbers:
            if (other := config_of(cls, **{parameter: number})) is None:
                continue  # classes check one number by another
            changed = {name for name in fields if name not in itself and value_of(other, name) != own[name]}
            same = {name for name in changed if value_of(other, name) == number}
            moved |= changed - same
            if parameter in fields or isinstance(number, dict):
                moved |= same
            for name in same:
                copies.setdefault(name, set()).add(parameter)
    copied = {
        name: parameters.pop()
        for name, parameters in copies.items()
        if len(parameters) == 1 and name not in moved
    }
    moved |= {name for name in copies if name not in copied}
    return Derived(frozenset(moved), copied)


def _changes(cls: Any, config: Any) -> Iterator[tuple[str, list[Any]]]:  # noqa: ANN401 - as above
    """Each parameter with other values for it; of a nested configuration's, one at a time."""
    for parameter in _parameters(cls):
        value = vars(config).get(parameter)  # some differ by layer, and say so when they are asked for
        if isinstance(value, int) and not isinstance(value, bool):
            yield parameter, [factor * value or factor for factor in _FACTORS]
        elif value is None:
            yield parameter, [_INSTEAD_OF_NONE]
        elif parameter in cls.sub_configs:
            inner = {name: getattr(value, name, None) for name in _parameters(type(value))}
            numbers = {name: number for name, number in inner.items() if type(number) is int}
            yield parameter, [{name: _FACTORS[0] * number or 1} for name, number in numbers.items()]


def _parameters(cls: Any) -> list[str]:  # noqa: ANN401 - as above
    own = (
        parameter
        for parameter in inspect.signature(cls.__init__).parameters.values()
        if parameter.name != "self"
    )
    return [
        parameter.name
        for parameter in own
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]


def layer_period(cls: Any) -> dict[str, object]:  # noqa: ANN401 - of a package without types
    """What repeats in `layer_types`, and the last layer's kind where that is always another.

    Empty for a class without such a list, one whose layers are all of full attention, one that has no period.
    """
    lists = [_layer_types(cls, length) for length in _LENGTHS]
    if not all(lists):
        return {}
    longest = lists[-1]
    for size in range(1, _LONGEST_PERIOD + 1):
        period = longest[:size]
        if all(_repeats(period, kinds[:-1]) for kinds in lists):
            if set(longest) == {"full_attention"}:
                return {}
            always = {kinds[-1] for kinds in lists}
            exact = all(_repeats(period, kinds) for kinds in lists)
            return {"period": period} if exact else {"period": period, "last": always.pop()}
    return {}


def _repeats(period: list[str], kinds: list[str]) -> bool:
    return all(kind == period[index % len(period)] for index, kind in enumerate(kinds))


def _layer_types(cls: Any, layers: int) -> list[str]:  # noqa: ANN401 - as above
    logging.disable(logging.ERROR)
    try:
        kinds = cls(num_hidden_layers=layers).layer_types
    except Exception:  # noqa: BLE001 - whatever the hundreds of classes raise
        return []
    finally:
        logging.disable(logging.NOTSET)
    listed = isinstance(kinds, list) and len(kinds) == layers and all(isinstance(kind, str) for kind in kinds)
    return kinds if listed else []


def model_defaults() -> str | None:
    """The whole file; None where transformers or vLLM is not installed."""
    try:
        generated_from = sources(*PACKAGES)
        classes = dict(config_classes())
    except (PackageNotFoundError, ImportError):
        return None
    fields: dict[str, object] = {}
    periods: dict[str, object] = {}
    names: dict[str, object] = {}
    once: dict[str, object] = {}
    for model_type, cls in sorted(classes.items()):
        if not (config := config_of(cls)):
            continue
        nested = _nested_type(config)
        derived = Derived(frozenset(), {}) if nested else derive(cls, _FIELDS, _value)
        if not (defaults := nested or _fields(config, derived.moved)):
            continue
        fields[model_type] = defaults
        if period := layer_period(cls):
            periods[model_type] = period
        mapped = {name: own for name, own in cls.attribute_map.items() if name in _FIELDS}
        if other := {**derived.other_names, **mapped}:
            names[model_type] = other
        if patterns := read_once(cls):
            once[model_type] = patterns
    written: dict[str, Mapping[str, object]] = {
        "generated_from": generated_from,
        "fields": fields,
        "layer_periods": periods,
        "other_names": names,
        "read_once": once,
    }
    lists = {
        "works_out_head_dim": sorted(name for name in fields if works_out_head_dim(classes[name])),
        "without_fields": sorted(classes.keys() - fields),
    }
    lines = [f"{json.dumps(key)}: {json_lines(value)}" for key, value in written.items()]
    lines += [
        f"{json.dumps(key)}: [\n{word_lines(map(json.dumps, value))}\n]" for key, value in lists.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _nested_type(config: Any) -> dict[str, object]:  # noqa: ANN401 - of a package without types
    """Type of the language model that is nested without one."""
    for name in _NESTED:
        inner = getattr(config, name, None)
        if model_type := getattr(inner, "model_type", None):
            return {name: {"model_type": model_type}}
    return {}


def _fields(config: Any, moved: frozenset[str]) -> dict[str, object]:  # noqa: ANN401 - as above
    """Defaults of a class of language models; empty for one of images and sounds alone."""
    if not hasattr(config, "vocab_size"):
        return {}
    own = {name: _value(config, name) for name in _FIELDS}
    return {name: value for name, value in own.items() if value and name not in moved}


def _value(config: Any, name: str) -> Any:  # noqa: ANN401 - as above
    try:
        value = getattr(config, name, None)
    except Exception:  # noqa: BLE001 - it differs by layer, and the class has one for most of them
        value = type(config).__dataclass_fields__[name].default
    if name == "dtype" and value is not None:
        return str(value).removeprefix("torch.")
    return value if isinstance(value, bool | int | str) else None
