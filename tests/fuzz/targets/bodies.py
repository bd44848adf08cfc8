"""Request bodies: a prompt, or an error for the client."""

from contextlib import suppress
from typing import Final

from tests.picker.fuzz.inputs import BODIES, PATHS

from kvtier_scorer.errors import BadRequestError, TooLargeError
from kvtier_scorer.picker.gateway.bodies import read_prompt

SEEDS: Final = [bytes([place % len(PATHS)]) + body for place, body in enumerate(BODIES)]


def run(data: bytes) -> None:
    """The first byte chooses the path."""
    if not data:
        return
    with suppress(BadRequestError, TooLargeError):  # what a client is told with 4xx
        read_prompt(PATHS[data[0] % len(PATHS)], data[1:])
