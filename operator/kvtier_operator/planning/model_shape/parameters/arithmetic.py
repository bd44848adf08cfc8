"""What computes one token of a prompt."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What computes one token.

    Attributes:
        parameters: How many.
        how: Where that is from, numbers filled in.
    """

    parameters: int
    how: str
