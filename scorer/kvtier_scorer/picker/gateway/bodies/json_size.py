"""How much a JSON text would become as objects, told without making them."""

import sys
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvtier_scorer.index.compiled import compiled, compiled_beside

MOST_CONTAINERS: Final = 1 << 16
"""Objects and lists in a body that is read. A conversation has one for each message and each of its parts."""
MOST_STRINGS: Final = 1 << 16
"""Strings in a body that is read, names of fields among them: four for each message and part."""
MOST_VALUES: Final = 1 << 19
"""Values of any kind in a body that is read: a prompt of half a million tokens by their numbers."""
SWITCH_S: Final = 0.0005
"""How long the thread that reads bodies keeps the interpreter's lock while the loop waits for it. Python's
own 5 ms would be added to a neighbour's request at each of its system calls."""
_LIGHT_BYTES: Final = 128 << 10
_LIGHT_CONTAINERS: Final = 4096
_LIGHT_VALUES: Final = 1 << 15

_QUOTE, _BACKSLASH, _COMMA, _BRACE, _BRACKET = (np.uint8(ord(sign)) for sign in '"\\,{[')


def is_small(body: bytes) -> bool:
    """Whether reading the body takes a few milliseconds at most, whatever is in it.

    Bytes are counted in strings too, so that an ordinary body pays some microseconds.
    """
    return len(body) <= _LIGHT_BYTES and bool(
        _few(np.frombuffer(body, np.uint8), _LIGHT_CONTAINERS, _LIGHT_VALUES)
    )


def is_bounded(body: bytes) -> bool:
    """Whether what the body becomes as objects is bounded: see MOST_CONTAINERS, MOST_STRINGS and MOST_VALUES.

    Of a long body for a thread of its own: others have the interpreter's lock meanwhile. A short one cannot
    be more than these.
    """
    return len(body) <= _LIGHT_BYTES or bool(_within_bounds(np.frombuffer(body, np.uint8)))


def prepare_reading() -> None:
    """Load or compile the kernels, so that no request waits for them; long bodies are read in short turns."""
    sys.setswitchinterval(SWITCH_S)
    text = np.frombuffer(b"{}", np.uint8)
    _few(text, 1, 1)
    _within_bounds(text)


@compiled
def _few(text: NDArray[np.uint8], most_containers: int, most_values: int) -> bool:
    # counters of 32 bits, so that 32 bytes are looked at in one step
    containers = np.uint32(0)
    values = np.uint32(0)
    for at in range(len(text)):
        byte = text[at]
        containers = np.uint32(containers + np.uint32((byte == _BRACE) | (byte == _BRACKET)))
        values = np.uint32(values + np.uint32(byte == _COMMA))
    return bool(containers <= most_containers and values <= most_values)


@compiled_beside
def _within_bounds(text: NDArray[np.uint8]) -> bool:
    """Counts what opens and what commas divide, outside strings; of what is no JSON it counts anything."""
    containers = strings = values = at = 0
    quoted = False
    while at < len(text):
        byte = text[at]
        if quoted:
            if byte == _BACKSLASH:
                at += 1
            elif byte == _QUOTE:
                quoted = False
        elif byte == _QUOTE:
            quoted = True
            strings += 1
        elif byte == _COMMA:
            values += 1
        elif byte in (_BRACE, _BRACKET):
            containers += 1
        at += 1
        if containers > MOST_CONTAINERS or strings > MOST_STRINGS or containers + values > MOST_VALUES:
            return False
    return True
