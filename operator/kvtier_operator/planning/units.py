"""Whole-number arithmetic and the way numbers are written for a reader."""

from typing import Final

KIB: Final = 1024
MIB: Final = 1024**2
GIB: Final = 1024**3
_SUFFIXES: Final = ((1024**4, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))


def ceil_div(dividend: int, divisor: int) -> int:
    """Quotient rounded up."""
    return -(-dividend // divisor)


def round_up(value: int, multiple: int) -> int:
    """Smallest multiple that is not below the value."""
    return ceil_div(value, multiple) * multiple


def round_down(value: int, multiple: int) -> int:
    """Largest multiple that is not above the value."""
    return value // multiple * multiple


def count(value: int) -> str:
    """A number with thousands separators."""
    return f"{value:,}"


def many(number: int, noun: str) -> str:
    """A number and its noun, such as `1 rank` or `2 ranks`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def each_of(number: int, noun: str) -> str:
    """All of so many, such as `the one engine` or `each of 2 engines`."""
    return f"the one {noun}" if number == 1 else f"each of {many(number, noun)}"


def size(value: int) -> str:
    """Bytes in the largest unit that leaves a number of at least 1, such as `100 GiB` or `1.95 GiB`."""
    for factor, suffix in _SUFFIXES:
        if abs(value) >= factor:
            whole, rest = divmod(value, factor)
            return f"{whole:,} {suffix}" if not rest else f"{value / factor:,.2f} {suffix}"
    return f"{value} B"


def size_exact(value: int) -> str:
    """Bytes both ways: `100 GiB (107,374,182,400 B)`."""
    return f"{size(value)} ({value:,} B)" if abs(value) >= KIB else f"{value} B"


def quantity(value: int) -> str:
    """Bytes as a Kubernetes quantity, in the largest binary suffix that is exact."""
    for factor, suffix in ((1024**4, "Ti"), (GIB, "Gi"), (MIB, "Mi"), (KIB, "Ki")):
        if value and value % factor == 0:
            return f"{value // factor}{suffix}"
    return str(value)
