"""One picker's flavour a file: what is true of it whatever a resource says.

A flavour is a module of this package named after the member of `Flavor`, in lower case, with `TRAITS`. Its
configuration is rendered by kvtier_scorer.config.flavors.
"""

from importlib import import_module
from typing import Protocol, cast

from kvtier_operator.api.spec.router import Flavor
from kvtier_operator.planning.flavors.traits import FlavorTraits


class FlavorModule(Protocol):
    """What a flavour's module has."""

    TRAITS: FlavorTraits


def flavor_traits(flavor: Flavor) -> FlavorTraits:
    """What is true of a flavour whatever a resource says."""
    return cast("FlavorModule", import_module(f"{__name__}.{flavor.name.lower()}")).TRAITS


def picker_image(flavor: Flavor, version: str) -> str:
    """The image of a flavour's picker; a version without a patch is that minor's first release."""
    number = version.removeprefix("v")
    full = number if number.count(".") > 1 else f"{number}.0"
    return flavor_traits(flavor).image.format(version=full)
