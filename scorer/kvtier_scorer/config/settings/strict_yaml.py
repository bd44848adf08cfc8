"""YAML without surprises: one mapping, every key once, and one line for what is wrong with it."""

from collections.abc import Hashable
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from kvtier_scorer.config.errors import PickerConfigError


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, which would silently keep the last of several equal keys.

    Not libyaml's: brackets nested without end are an exception here and the end of the process there.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ConstructorError(None, None, "a key must be a plain name", key.start_mark)
            if key.value in seen:
                raise ConstructorError(None, None, f"{key.value!r} is there twice", key.start_mark)
            seen.add(key.value)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return mapping


def load_mapping(text: str) -> dict[str, Any]:
    """The one mapping that `text` holds.

    Raises:
        PickerConfigError: It is not YAML, not one document, not a mapping, or has a key twice.
    """
    try:
        # _Loader is a safe loader: it makes plain values only
        document = yaml.load(text, Loader=_Loader)  # noqa: S506
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        raise PickerConfigError(f"{where}bad YAML: {_one_line(error.problem or error.context)}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # characters that YAML forbids; dates that the calendar lacks; brackets without end
        raise PickerConfigError(f"bad YAML: {_one_line(error)}") from None
    if not isinstance(document, dict):
        raise PickerConfigError("the configuration must be a mapping with apiVersion, kind and plugins")
    return document


def _one_line(message: object) -> str:
    return " ".join(str(message).split())
