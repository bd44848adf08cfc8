"""kvtier's own traces: JSON lines, the first of which names the format's version.

    {"kvtier_trace": 1}
    {"time_s": 0, "model": "m", "prompt": [["system-3", 30000], ["question-17", 256]], "output_tokens": 1024}

`prompt` is a list of segments `[id, tokens]`. Equal ids are equal text, so prompts share a prefix as far as
their first ids are equal; an id has one length in a file, and ids are strings or whole numbers. With
`"concurrency": 45` in the first line that many requests are always under way, and `time_s` is left out.
"""

from collections.abc import Iterator
from typing import Final

from kvtier_scorer.simulate.traces.lines import Line, read_lines, shown
from kvtier_scorer.simulate.traces.request import Segment, TraceRequest

NAME: Final = "kvtier"
VERSION: Final = 1
_KEY: Final = "kvtier_trace"
_SEGMENT: Final = 2


def claims(first: Line) -> bool:
    """Whether a file that begins with this line is such a trace."""
    return _KEY in first.fields


def concurrency(first: Line) -> int | None:
    """Requests under way at any time; None where requests have times.

    Raises:
        TraceError: The first line is of another version, or wrong.
    """
    if first.fields[_KEY] != VERSION:
        raise first.error(
            _KEY, f"version {shown(first.fields[_KEY])} is not known; this release reads {VERSION}"
        )
    first.only(_KEY, "concurrency")
    if "concurrency" not in first.fields:
        return None
    value = first.fields["concurrency"]
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise first.error("concurrency", f"must be a whole number of 1 or more, not {shown(value)}")
    return value


def read(file: str, text: str) -> Iterator[TraceRequest]:
    """The requests of a trace, in the order of its lines.

    Raises:
        TraceError: A line is wrong.
    """
    lines = read_lines(file, text)
    first = next(lines)
    timed = concurrency(first) is None
    lengths: dict[str | int, tuple[int, int]] = {}
    for line in lines:
        line.only("model", "prompt", "output_tokens", *(("time_s",) if timed else ()))
        model = line.fields.get("model")
        if not isinstance(model, str) or not model:
            raise line.error("model", f"must be a name, not {shown(model)}")
        yield TraceRequest(
            model=model,
            segments=tuple(
                _segment(line, number, item, lengths) for number, item in enumerate(line.items("prompt"))
            ),
            output_tokens=line.tokens("output_tokens"),
            time_s=line.seconds("time_s") if timed else None,
        )


def _segment(line: Line, number: int, item: object, lengths: dict[str | int, tuple[int, int]]) -> Segment:
    field = f"prompt[{number}]"
    if not isinstance(item, list) or len(item) != _SEGMENT:
        raise line.error(field, f"must be [id, tokens], not {shown(item)}")
    key, tokens = item[0], line.checked_tokens(f"{field}[1]", item[1])
    if isinstance(key, bool) or not isinstance(key, str | int):
        raise line.error(f"{field}[0]", f"must be a string or a whole number, not {shown(key)}")
    known, where = lengths.setdefault(key, (tokens, line.number))
    if known != tokens:
        raise line.error(
            f"{field}[1]",
            f"{shown(key)} has {tokens:,} tokens here and {known:,} in line {where}; an id has one length, "
            "give the other another id",
        )
    return Segment(key, tokens)
