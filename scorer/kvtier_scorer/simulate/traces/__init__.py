"""Traces of requests: one format a file, registered here."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvtier_scorer.simulate.errors import TraceError
from kvtier_scorer.simulate.traces import mooncake, own
from kvtier_scorer.simulate.traces.lines import Line, read_lines
from kvtier_scorer.simulate.traces.request import TraceRequest
from kvtier_scorer.simulate.traces.trace import Trace, build_trace


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """A format of trace files.

    Attributes:
        claims: Whether a file that begins with this line is of the format.
        read: The requests of a file (name, text).
        concurrency: Requests under way at any time by the first line; None where requests have times.
    """

    claims: Callable[[Line], bool]
    read: Callable[[str, str], Iterator[TraceRequest]]
    concurrency: Callable[[Line], int | None]


def _timed(_: Line) -> None:
    return None


_MOST_CHARACTERS: Final = 1 << 30
"""The longest of the published traces have a tenth of it."""
FORMATS: Final[Mapping[str, TraceFormat]] = {
    own.NAME: TraceFormat(own.claims, own.read, own.concurrency),
    mooncake.NAME: TraceFormat(mooncake.claims, mooncake.read, _timed),
}


def parse_trace(file: str, text: str) -> Trace:
    """The trace in `text`, whose format its first line tells.

    Args:
        file: The file's name, for messages.
        text: Its content.

    Raises:
        TraceError: It is of no known format, or a line is wrong.
    """
    first = next(read_lines(file, text), None)
    if first is None:
        raise TraceError(f"{file}: is empty; give a trace with one request at least")
    for trace_format in FORMATS.values():
        if trace_format.claims(first):
            return build_trace(file, trace_format.read(file, text), trace_format.concurrency(first))
    raise TraceError(
        f"{file}:{first.number}: is the first line of no known format ({', '.join(FORMATS)}); begin with "
        '{"kvtier_trace": 1}, or give lines with timestamp, input_length, output_length and hash_ids'
    )


def load_trace(path: Path) -> Trace:
    """The trace in a file.

    Raises:
        TraceError: It cannot be read, is of no known format, or a line is wrong.
    """
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MOST_CHARACTERS)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}; give a file that can") from None
    except UnicodeDecodeError as error:
        raise TraceError(
            f"{path}: is not UTF-8 text (byte {error.start:,}); give a file of JSON lines"
        ) from None
    if len(text) == _MOST_CHARACTERS:
        raise TraceError(f"{path}: has more than {_MOST_CHARACTERS >> 20} Mi characters; give a part of it")
    return parse_trace(str(path), text)
