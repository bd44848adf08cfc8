"""A target with a fault behind branches: whether the fuzzer is guided, and what it finds is told."""

from typing import Final

SEEDS: Final = [b"____"]
_NAME: Final = b"fuz"


def run(data: bytes) -> None:
    """Dies of what no random bytes are likely to begin with."""
    if len(data) > len(_NAME):
        for place, letter in enumerate(_NAME):  # a branch each, for coverage to tell
            if data[place] != letter:
                return
        raise KeyError("planted")
