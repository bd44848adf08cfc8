"""Models as the Transformers library's own classes describe them, of each type that vLLM has a class of.

A few layers of each, written out in full; and the same with windows in some layers, which few classes read.
"""

import logging
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, Final

from tests.engine.planning.oracle.cases import Case
from tests.engine.planning.oracle.combinations import Combination

from kvtier_operator.planning.model_shape.config.engine_data.architectures import unknown_architecture
from kvtier_operator.planning.model_shape.config.fields import ConfigFields

LIBRARY: Final = "library: "
_LAYERS: Final = 8
_ENGINES: Final = (
    Combination(),
    Combination(dtype="fp8"),
    Combination(2, "fp8"),
    Combination(2, block=64),
    Combination(8),
)
_MAPPINGS: Final = ("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES")
_HALF: Final = ("sliding_attention", "full_attention")
_WINDOW_TOKENS: Final = 512
_CONVOLUTIONS: Final = "lfm2"  # whatever is not full attention


@cache
def library_cases() -> tuple[Case, ...]:
    """All of them, in the order of their types."""
    logging.disable(logging.ERROR)
    try:
        return tuple(_cases())
    finally:
        logging.disable(logging.NOTSET)


def _cases() -> Iterator[Case]:
    auto = import_module("transformers.models.auto.modeling_auto")
    classes = import_module("transformers.models.auto.configuration_auto").CONFIG_MAPPING
    names = {model_type: name for mapping in _MAPPINGS for model_type, name in getattr(auto, mapping).items()}
    for model_type in sorted(names.keys() & classes.keys()):
        name = names[model_type]
        if not isinstance(name, str) or unknown_architecture(ConfigFields({"architectures": [name]}, "")):
            continue
        config = _config(classes[model_type])
        if config is None:
            continue
        config |= {"architectures": [name], "dtype": "bfloat16"}
        yield Case(f"{LIBRARY}{model_type}", {"config.json": config}, _ENGINES)
        plain = config.get("num_hidden_layers") == _LAYERS and not config.get("layer_types")
        if plain and "text_config" not in config and not model_type.startswith(_CONVOLUTIONS):
            windows = {"layer_types": [*_HALF] * (_LAYERS // 2), "sliding_window": _WINDOW_TOKENS}
            yield Case(f"{LIBRARY}{model_type} of windows", {"config.json": config | windows}, _ENGINES[:1])


def _config(cls: Any) -> dict[str, Any] | None:
    """Of few layers, where the class takes their number; None where it needs more than that to be made."""
    for numbers in ({"num_hidden_layers": _LAYERS}, {"text_config": {"num_hidden_layers": _LAYERS}}, {}):
        try:
            made: dict[str, Any] = cls(**numbers).to_dict()
        except Exception:  # noqa: BLE001, S112 - whatever the hundreds of classes raise
            continue
        if (made.get("num_kv_shared_layers") or 0) < _LAYERS:  # which are some of the last
            return made
    return None
