"""The language model that a configuration names by its repository: Ultravox's.

vLLM reads that repository's config.json (transformers_utils/configs/ultravox.py, text_model_id).
"""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_operator.api.schema.complaints import show_value
from kvtier_operator.errors import InvalidInputError, Problem

_TYPE: Final = "ultravox"
_FIELD: Final = "text_model_id"
_PART: Final = "text_config"


def with_text_model(config: Mapping[str, Any], source: str) -> Mapping[str, Any]:
    """The configuration with its language model's in it.

    Raises:
        InvalidInputError: It names one that the catalogue lacks, and does not describe it either.
    """
    name = config.get(_FIELD)
    if config.get("model_type") != _TYPE or name is None:
        return config
    from kvtier_operator.planning.model_shape.catalogue import (  # noqa: PLC0415 - slow to import
        config_in_catalogue,
    )

    found = config_in_catalogue(name) if isinstance(name, str) else None
    if found is not None:
        return {**config, _PART: found}
    if config.get(_PART):
        return config
    message = (
        f"{show_value(name)} is not in the catalogue: write its config.json's fields as {_PART} beside it"
    )
    raise InvalidInputError(source, Problem(_FIELD, f"{message}, or set spec.model.geometry"))
