"""Mooncake's traces: `timestamp` (ms), `input_length`, `output_length` and `hash_ids` in each line.

An id stands for 512 tokens and all before them; the last of a prompt for what is left. Source:
kvcache-ai/Mooncake, FAST25-release/README.md and traces/*.jsonl, and the appendix of its FAST '25 paper. In
conversation_trace.jsonl (12,031 requests) and synthetic_trace.jsonl (3,993) every line has
ceil(input_length / 512) ids, every id always the same id before it, and every last id the same length.
"""

from collections.abc import Iterator
from typing import Final

from kvtier_scorer.simulate.traces.lines import Line, read_lines, shown
from kvtier_scorer.simulate.traces.request import Segment, TraceRequest

NAME: Final = "mooncake"
BLOCK_TOKENS: Final = 512
"""Tokens that an id stands for."""
_MODEL: Final = "mooncake"
_MS_PER_S: Final = 1000.0
_FIELDS: Final = ("timestamp", "input_length", "output_length", "hash_ids")


def claims(first: Line) -> bool:
    """Whether a file that begins with this line is such a trace."""
    return "hash_ids" in first.fields


def read(file: str, text: str) -> Iterator[TraceRequest]:
    """The requests of a trace, in the order of its lines.

    Raises:
        TraceError: A line is wrong.
    """
    for line in read_lines(file, text):
        line.only(*_FIELDS)
        tokens = line.tokens("input_length")
        ids = line.items("hash_ids")
        expected = -(-tokens // BLOCK_TOKENS)
        if len(ids) != expected:
            raise line.error(
                "hash_ids",
                f"has {len(ids)} ids, but {tokens:,} tokens are {expected} blocks of {BLOCK_TOKENS}; "
                "correct input_length or hash_ids",
            )
        for number, each in enumerate(ids):
            if isinstance(each, bool) or not isinstance(each, int):
                raise line.error(f"hash_ids[{number}]", f"must be a whole number, not {shown(each)}")
        last = tokens - BLOCK_TOKENS * (expected - 1)
        segments = [Segment(each, BLOCK_TOKENS) for each in ids[:-1]]
        # an id whose block is not full may be that of a full one elsewhere only by mistake
        segments.append(Segment((ids[-1], last) if last != BLOCK_TOKENS else ids[-1], last))
        yield TraceRequest(
            model=_MODEL,
            segments=tuple(segments),
            output_tokens=max(1, line.tokens("output_length", least=0)),
            time_s=line.seconds("timestamp", per_s=_MS_PER_S),
        )
