"""Figures as a person reads them; a dash where there is none."""

from typing import Final

NONE: Final = "-"
_AGES: Final = ((86400, "d"), (3600, "h"), (60, "m"))
_EXACT_S: Final = 10.0


def share(value: float | None) -> str:
    """A share from 0 to 1, such as `41.3%`."""
    return NONE if value is None else f"{value:.1%}"


def seconds(value: float | None) -> str:
    """Seconds, with a digit after the point where there are few."""
    if value is None:
        return NONE
    return f"{value:,.1f} s" if abs(value) < _EXACT_S else f"{value:,.0f} s"


def age(value_s: float) -> str:
    """How long ago, in the largest unit of which it has one, as kubectl writes it."""
    for factor, suffix in _AGES:
        if value_s >= factor:
            return f"{int(value_s // factor)}{suffix}"
    return f"{int(max(value_s, 0))}s"
