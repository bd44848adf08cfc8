"""Options that take several names, separated by commas or repeated."""

from collections.abc import Callable, Sequence

import click

Check = Callable[[click.Context, click.Parameter, Sequence[str]], tuple[str, ...]]


def names_of(choices: Sequence[str]) -> Check:
    """Return a callback for an option with `multiple=True`: the names in the order given, each once.

    Args:
        choices: what they may be; anything else ends the command with a line that lists them.
    """

    def check(_context: click.Context, _option: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
        names = [name.strip() for value in values for name in value.split(",")]
        for name in names:
            if name not in choices:
                known = ", ".join(map(repr, choices))
                raise click.BadParameter(f"{name!r} is not one of {known}.")
        return tuple(dict.fromkeys(names))

    return check


def names_shown(choices: Sequence[str]) -> str:
    """Return what stands for such an option's value in its help."""
    return f"[{'|'.join(choices)}],..."
