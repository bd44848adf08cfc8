"""Options that take several names, separated by commas or repeated."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import click

Check = Callable[[click.Context, click.Parameter, Sequence[str]], tuple[str, ...]]


_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def names_of(choices: Sequence[str], elsewhere: Mapping[str, str] = _NOTHING) -> Check:
    """Return a callback for an option with `multiple=True`: the names in the order given, each once.

    Args:
        choices: what they may be; anything else ends the command with a line that lists them.
        elsewhere: names that are none of them, and where each is to be had.
    """

    def check(_context: click.Context, _option: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
        names = [name.strip() for value in values for name in value.split(",")]
        for name in names:
            if name in elsewhere:
                raise click.BadParameter(f"{name!r}: {elsewhere[name]}.")
            if name not in choices:
                known = ", ".join(map(repr, choices))
                raise click.BadParameter(f"{name!r} is not one of {known}.")
        return tuple(dict.fromkeys(names))

    return check


def names_shown(choices: Sequence[str]) -> str:
    """Return what stands for such an option's value in its help."""
    return f"[{'|'.join(choices)}],..."
