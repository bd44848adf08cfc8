"""One request of a trace, as every format gives it."""

from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a prompt.

    Attributes:
        key: Equal for two segments of the same content. Prompts share a prefix as far as their first segments
            have equal keys, so a key may also stand for its content and everything before it.
        tokens: Its length, 1 at least; the same wherever the key is the same.
    """

    key: Hashable
    tokens: int


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """One request.

    Attributes:
        model: Its model; models share no prefix.
        segments: The prompt, one segment at least.
        output_tokens: Tokens of the answer, 1 at least.
        time_s: When it is sent, from the start of the trace; None where the trace has a constant concurrency.
    """

    model: str
    segments: tuple[Segment, ...]
    output_tokens: int
    time_s: float | None = None
