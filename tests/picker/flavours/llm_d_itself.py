"""What tests of llm-d-router itself share."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tests.picker.flavours.inputs import EXAMPLE
from tests.picker.harness.pickers.llm_d import LlmD, LlmDStart, rendered

from kvtier_scorer.config.flavors import picker_config
from kvtier_scorer.config.flavors.llm_d import MIN_BLOCK_TOKENS
from kvtier_scorer.config.model import PickerInput

BLOCK_BYTES: Final = 4 * MIN_BLOCK_TOKENS
"""Of text in one entry: tokens are taken for 4 bytes each."""
ENGINES: Final = 3
_WAIT_S: Final = 60.0
_POLL_S: Final = 0.05


def start_of(version: str, asked: PickerInput = EXAMPLE, *more: str) -> LlmDStart:
    """How the picker of a resource is started, but for the configuration of another input."""
    arguments, _ = rendered(version)
    return LlmDStart(version, picker_config("llm-d", replace(asked, version=version)).text, arguments, more)


def blocks(count: int, name: str) -> str:
    """A prompt of so many entries, none of which a prompt of another name has."""
    return "".join(f"{name}-{number}".ljust(BLOCK_BYTES, ".") for number in range(count))


def until(is_so: Callable[[], bool]) -> None:
    """Waits for what the picker does by itself."""
    deadline = time.monotonic() + _WAIT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(_POLL_S)


def entries_are(picker: LlmD, gpu: int, cpu: int) -> None:
    """Waits until the picker counts so many entries in its two indexes, which it does once a second."""
    until(lambda: picker.entries() == {"gpu-prefix-cache-producer": gpu, "cpu-prefix-cache-producer": cpu})
