"""Renders the configuration of endpoint pickers: one flavour or version a file, registered here."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from kvtier_scorer.config.errors import PickerConfigError
from kvtier_scorer.config.flavors.builtin import builtin_config
from kvtier_scorer.config.flavors.gaie import gaie_config
from kvtier_scorer.config.flavors.llm_d import llm_d_config
from kvtier_scorer.config.model import PickerConfig, PickerInput

_FLAVORS: Final[Mapping[str, Callable[[PickerInput], PickerConfig]]] = {
    "llm-d": llm_d_config,
    "gaie": gaie_config,
    "builtin": builtin_config,
}


@lru_cache(maxsize=256)
def picker_config(flavor: str, given: PickerInput) -> PickerConfig:
    """The EndpointPickerConfig of one flavour.

    Args:
        flavor: `llm-d`, `gaie` or `builtin`.
        given: Weights, tiers in tokens and the picker's version.

    Returns:
        The configuration and the LRU capacities in it.

    Raises:
        UnsupportedVersionError: No configuration is known to work with that version.
        NoScorerError: No scorer has a weight and a tier.
        PickerConfigError: The flavour is not known.
    """
    try:
        render = _FLAVORS[flavor]
    except KeyError:
        raise PickerConfigError(f"unknown flavour {flavor!r}; known are {', '.join(_FLAVORS)}") from None
    return render(given)
