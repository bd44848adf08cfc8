"""Traces in files: JSON lines, Mooncake's or kvtier's own; each mistake is told with file, line and field.

Mooncake's have `timestamp` (ms), `input_length`, `output_length` and `hash_ids` in each line. An id stands
for 512 tokens and all before them; the last of a prompt for what is left. Source: kvcache-ai/Mooncake,
FAST25-release/README.md and traces/*.jsonl, and the appendix of its FAST '25 paper. In
conversation_trace.jsonl (12,031 requests) and synthetic_trace.jsonl (3,993) every line has
ceil(input_length / 512) ids, every id always the same id before it, and every last id the same length.

kvtier's own name the format's version in the first line:

    {"kvtier_trace": 1}
    {"time_s": 0, "model": "m", "prompt": [["system-3", 30000], ["question-17", 256]], "output_tokens": 1024}

`prompt` is a list of segments `[id, tokens]`. Equal ids are equal text, so prompts share a prefix as far as
their first ids are equal; an id has one length in a file, and ids are strings or whole numbers. With
`"concurrency": 45` in the first line that many requests are always under way, and `time_s` is left out. What
a request says of its blocks is in `"hints"`, an object as in `kv_transfer_params.kvtier`, such as
`{"retain": 60, "priority": "high", "share": "team"}`.
"""

import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json
from kvtier_common.hints import NO_HINTS, Hints, parse_hints
from kvtier_scorer.simulate.trace import Segment, Trace, TraceError, TraceRequest, build_trace

_MOST_CHARACTERS: Final = 1 << 30  # the longest of the published traces have a tenth of it
_MOST_TOKENS: Final = 10_000_000
_MOST_TIME_S: Final = 1e9
"""Some thirty years: more is a mistake, such as a date in place of a time since the start in nanoseconds."""
_MOST_LINE_BYTES: Final = 64 << 20  # ten million hashes are as long
_MOONCAKE_BLOCK_TOKENS: Final = 512
_MS_PER_S: Final = 1000.0
_OWN_KEY: Final = "kvtier_trace"
_OWN_VERSION: Final = 1
_SEGMENT_ITEMS: Final = 2
_SHOWN_CHARACTERS: Final = 60
_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = _SHOWN_CHARACTERS


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of a trace; its methods raise TraceError where a field is missing or something else."""

    file: str
    number: int
    fields: Mapping[str, Any]

    def error(self, field: str, problem: str) -> TraceError:
        """What is wrong with `field`; `problem` also says what to do."""
        return TraceError(f"{self.file}:{self.number}: {field}: {problem}")

    def seconds(self, field: str, per_s: float = 1.0) -> float:
        """A time since the start in seconds, from a field that counts `per_s` a second."""
        value = self.fields.get(field)
        most = _MOST_TIME_S * per_s
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise self.error(field, f"must be a number from 0 to {most:g}, not {_brief(value)}")
        return float(value) / per_s

    def tokens(self, field: str, least: int = 1) -> int:
        """The line's field as a count of tokens, `least` at least."""
        return self.count_of(field, self.fields.get(field), least)

    def count_of(self, field: str, value: object, least: int = 1) -> int:
        """A value from deeper in the line as a count of tokens; `field` is its path."""
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST_TOKENS:
            raise self.error(
                field, f"must be a whole number of tokens, {least} to {_MOST_TOKENS:,}, not {_brief(value)}"
            )
        return value

    def items(self, field: str) -> list[Any]:
        """A list with something in it."""
        value = self.fields.get(field)
        if not isinstance(value, list) or not value:
            raise self.error(field, f"must be a list with one element at least, not {_brief(value)}")
        return value

    def only(self, *known: str) -> None:
        """Refuse fields of other names."""
        for field in self.fields:
            if field not in known:
                raise self.error(field, f"is not a field of this format; known are {', '.join(known)}")


def load_trace(path: Path) -> Trace:
    """The trace in a file; TraceError if it cannot be read, is of no known format, or a line is wrong."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MOST_CHARACTERS)
    except FileNotFoundError:
        raise TraceError(
            f"{path}: there is no such file; give the path of a trace, or high-cache, low-cache, agents or "
            "tenants"
        ) from None
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}; give a file that can") from None
    except UnicodeDecodeError as error:
        raise TraceError(
            f"{path}: is not UTF-8 text (byte {error.start:,}); give a file of JSON lines"
        ) from None
    if len(text) == _MOST_CHARACTERS:
        raise TraceError(f"{path}: has more than {_MOST_CHARACTERS >> 20} Mi characters; give a part of it")
    return parse_trace(str(path), text)


def parse_trace(file: str, text: str) -> Trace:
    """The trace in `text`, whose format its first line tells; `file` is the name for messages.

    Raises TraceError: it is of no known format, or a line is wrong.
    """
    first = next(_lines(file, text), None)
    if first is None:
        raise TraceError(f"{file}: is empty; give a trace with one request at least")
    if _OWN_KEY in first.fields:
        return build_trace(file, _read_own(file, text), _own_concurrency(first))
    if "hash_ids" in first.fields:
        return build_trace(file, _read_mooncake(file, text), block_tokens=_MOONCAKE_BLOCK_TOKENS)
    raise TraceError(
        f"{file}:{first.number}: is the first line of no known format (kvtier, mooncake); begin with "
        '{"kvtier_trace": 1}, or give lines with timestamp, input_length, output_length and hash_ids'
    )


def _lines(file: str, text: str) -> Iterator[_Line]:
    """The lines that are not blank."""
    # not splitlines: a string may hold U+2028, which ends no line of JSON lines
    for number, raw in enumerate(text.split("\n"), 1):
        if not raw.strip():
            continue
        try:
            fields = parse_json(raw, most_bytes=_MOST_LINE_BYTES)
        except MalformedError as error:
            raise TraceError(
                f"{file}:{number}: is not JSON: {error}; put one JSON object on each line"
            ) from None
        if not isinstance(fields, dict):
            raise TraceError(f"{file}:{number}: must be a JSON object, not {_brief(fields)}")
        yield _Line(file, number, fields)


def _read_mooncake(file: str, text: str) -> Iterator[TraceRequest]:
    for line in _lines(file, text):
        line.only("timestamp", "input_length", "output_length", "hash_ids")
        tokens = line.tokens("input_length")
        ids = line.items("hash_ids")
        expected = -(-tokens // _MOONCAKE_BLOCK_TOKENS)
        if len(ids) != expected:
            raise line.error(
                "hash_ids",
                f"has {len(ids)} ids, but {tokens:,} tokens are {expected} blocks of "
                f"{_MOONCAKE_BLOCK_TOKENS}; correct input_length or hash_ids",
            )
        for number, block in enumerate(ids):
            if isinstance(block, bool) or not isinstance(block, int):
                raise line.error(f"hash_ids[{number}]", f"must be a whole number, not {_brief(block)}")
        last = tokens - _MOONCAKE_BLOCK_TOKENS * (expected - 1)
        segments = [Segment(block, _MOONCAKE_BLOCK_TOKENS) for block in ids[:-1]]
        # an id whose block is not full may be that of a full one elsewhere only by mistake
        segments.append(Segment((ids[-1], last) if last != _MOONCAKE_BLOCK_TOKENS else ids[-1], last))
        yield TraceRequest(
            model="mooncake",
            segments=tuple(segments),
            output_tokens=max(1, line.tokens("output_length", least=0)),
            time_s=line.seconds("timestamp", per_s=_MS_PER_S),
        )


def _own_concurrency(first: _Line) -> int | None:
    """Requests under way at any time; None where requests have times."""
    if first.fields[_OWN_KEY] != _OWN_VERSION:
        raise first.error(
            _OWN_KEY,
            f"version {_brief(first.fields[_OWN_KEY])} is not known; this release reads {_OWN_VERSION}",
        )
    first.only(_OWN_KEY, "concurrency")
    if "concurrency" not in first.fields:
        return None
    value = first.fields["concurrency"]
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise first.error("concurrency", f"must be a whole number of 1 or more, not {_brief(value)}")
    return value


def _read_own(file: str, text: str) -> Iterator[TraceRequest]:
    lines = _lines(file, text)
    timed = _own_concurrency(next(lines)) is None
    lengths: dict[str | int, tuple[int, int]] = {}
    for line in lines:
        line.only("model", "prompt", "output_tokens", "hints", *(("time_s",) if timed else ()))
        model = line.fields.get("model")
        if not isinstance(model, str) or not model:
            raise line.error("model", f"must be a name, not {_brief(model)}")
        yield TraceRequest(
            model=model,
            segments=tuple(
                _segment(line, f"prompt[{number}]", item, lengths)
                for number, item in enumerate(line.items("prompt"))
            ),
            output_tokens=line.tokens("output_tokens"),
            time_s=line.seconds("time_s") if timed else None,
            hints=_hints(line),
        )


def _hints(line: _Line) -> Hints:
    """A request's hints: an engine passes over what it does not understand, but a trace is to be right."""
    if "hints" not in line.fields:
        return NO_HINTS
    if not isinstance(line.fields["hints"], dict):
        raise line.error("hints", f"must be an object, not {_brief(line.fields['hints'])}")
    hints, problems = parse_hints(line.fields["hints"])
    if problems:
        raise line.error("hints", f"{problems[0]}; correct it or leave it out")
    return hints


def _segment(line: _Line, field: str, item: object, lengths: dict[str | int, tuple[int, int]]) -> Segment:
    if not isinstance(item, list) or len(item) != _SEGMENT_ITEMS:
        raise line.error(field, f"must be [id, tokens], not {_brief(item)}")
    key, tokens = item[0], line.count_of(f"{field}[1]", item[1])
    if isinstance(key, bool) or not isinstance(key, str | int):
        raise line.error(f"{field}[0]", f"must be a string or a whole number, not {_brief(key)}")
    known, where = lengths.setdefault(key, (tokens, line.number))
    if known != tokens:
        raise line.error(
            f"{field}[1]",
            f"{_brief(key)} has {tokens:,} tokens here and {known:,} in line {where}; an id has one length, "
            "give the other another id",
        )
    return Segment(key, tokens)


def _brief(value: object) -> str:
    """A value for a message, shortened."""
    if value is None:
        return "nothing"
    text = _short.repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."
