"""Which vLLM ran with kvtier's connector on which card: of what the default image may be, and SUPPORT.md.

Tests run on the CPU, so a minor that they accept is not yet one that a GPU has seen
(docs/development/adr/0058-the-default-is-what-a-card-has-seen.md).
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One release of vLLM with its own kernels on one card."""

    card: str  # how many of what, as its maker calls it
    vllm: str  # the release
    when: str  # month and year
    kinds: str  # kinds of models that answered from the tier as they did cold
    how: str  # what ran them


SIGHTINGS: Final = (
    Sighting(
        card="one NVIDIA H200",
        vllm="0.32.0",
        when="November 2026",
        kinds="full attention (Qwen3; also fp8, also compiled), sliding window (gemma-3), hybrid (Qwen3.5, "
        "Nemotron-H; LFM2 with chunks of one block), MLA (also fp8); tensor parallel size 1",
        how="by hand: the planned arguments, random weights",
    ),
)
"""The oldest first. A row comes from a run of `python -m tests.bench.card` that found all outputs equal."""


def newest_seen() -> str:
    """The release of the newest minor that a card has seen: the default image has it."""
    return max((each.vllm for each in SIGHTINGS), key=_numbers)


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))
