"""Numbers as an axis has them, in Grafana's units."""

from collections.abc import Sequence
from typing import Final

_THOUSANDS: Final = ("", "K", "M", "G", "T")
_BYTES: Final = (" B", " KiB", " MiB", " GiB", " TiB")
_BYTES_PER_S: Final = (" B/s", " kB/s", " MB/s", " GB/s", " TB/s")
_STEPS: Final = 4


def top(largest: float, unit: str) -> float:
    """Where an axis ends whose quarters are round numbers too."""
    if largest <= 0:
        return 1.0
    if unit == "bytes":
        power = 1
        while power < largest:
            power *= 2
        return float(power)
    power_of_ten = 1.0
    while power_of_ten < largest:
        power_of_ten *= 10
    while power_of_ten / 10 >= largest:
        power_of_ten /= 10
    return min(power_of_ten * part for part in (0.2, 0.4, 0.8, 1.0) if power_of_ten * part >= largest)


def ticks(end: float) -> tuple[float, ...]:
    """The axis' quarters, its ends among them."""
    return tuple(end * step / _STEPS for step in range(_STEPS + 1))


def text(value: float, unit: str) -> str:
    """Such as `250 ms` or `1.5 GiB`."""
    match unit:
        case "percentunit":
            return f"{100 * value:.3g}%"
        case "s":
            return f"{1000 * value:.3g} ms" if 0 < value < 1 else f"{value:.3g} s"
        case "bytes":
            return _scale(value, 1024, _BYTES)
        case "Bps":
            return _scale(value, 1000, _BYTES_PER_S)
        case _:
            return _scale(value, 1000, _THOUSANDS)


def _scale(value: float, step: int, names: Sequence[str]) -> str:
    index = 0
    while value >= step and index < len(names) - 1:
        value /= step
        index += 1
    return f"{value:.3g}{names[index]}"
