"""YAML without surprises: one mapping, and one line for what is wrong with it."""

from typing import Any

from kvtier_common.errors import MalformedError
from kvtier_common.formats.yaml_text import read_yaml
from kvtier_scorer.config.errors import PickerConfigError


def load_mapping(text: str) -> dict[str, Any]:
    """The one mapping that `text` holds.

    Raises:
        PickerConfigError: It is not YAML, not one document, not a mapping, or has a key twice.
    """
    try:
        documents = [*read_yaml(text)]
    except MalformedError as error:
        raise PickerConfigError(f"bad YAML: {error}") from None
    match documents:
        case [dict() as document]:
            return document
        case [_, _, *_]:
            raise PickerConfigError(f"{len(documents)} documents; keep one")
    raise PickerConfigError("the configuration must be a mapping with apiVersion, kind and plugins")
