"""Renders the configuration of endpoint pickers, one flavour a file.

A flavour is a module of this package named after it, with `SCORERS` and `config`; nothing else names it.
"""

from collections.abc import Container
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, cast

from kvtier_scorer.config.model import PLUGINS, PickerConfig, PickerConfigError, PickerInput


class FlavorModule(Protocol):
    """What a flavour's module has; `SCORERS` are those that the picker has, beside the tiers'."""

    SCORERS: Container[str]

    def config(self, inputs: PickerInput) -> PickerConfig:
        """The configuration, of weights that all have a scorer."""


@lru_cache(maxsize=256)
def picker_config(flavor: str, inputs: PickerInput) -> PickerConfig:
    """The EndpointPickerConfig of one flavour (`llm-d`, `gaie`, `builtin`), and the LRU capacities in it.

    Raises UnsupportedVersionError: no configuration is known to work with that version; NoScorerError: no
    scorer has a weight and a tier; PickerConfigError: the flavour is not known.
    """
    module = _module(flavor)
    unread = tuple(name for name in PLUGINS if inputs.weights.get(name) and name not in module.SCORERS)
    read = replace(inputs, weights=inputs.weights | dict.fromkeys(unread, 0))
    return replace(module.config(read), unread=unread)


def _module(flavor: str) -> FlavorModule:
    name = f"{__name__}.{flavor.replace('-', '_')}"
    if find_spec(name) is None:
        raise PickerConfigError(f"unknown flavour {flavor!r}")
    return cast("FlavorModule", import_module(name))
