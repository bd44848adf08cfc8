"""Reads JSON lines so that each mistake is told with its file, line and field."""

import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json
from kvtier_scorer.simulate.errors import TraceError

_MOST_TOKENS = 10_000_000
_MOST_TIME_S = 1e9
"""Some thirty years: more is a mistake, such as a date in place of a time since the start in nanoseconds."""
_MOST_LINE = 64 << 20
"""Ten million hashes are as long."""
_SHOWN = 60
_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = _SHOWN


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a trace.

    Attributes:
        file: The file's name.
        number: From 1.
        fields: The object in it.
    """

    file: str
    number: int
    fields: Mapping[str, Any]

    def error(self, field: str, problem: str) -> TraceError:
        """What is wrong with `field`; `problem` also says what to do."""
        return TraceError(f"{self.file}:{self.number}: {field}: {problem}")

    def seconds(self, field: str, per_s: float = 1.0) -> float:
        """A time since the start in seconds, from a field that counts `per_s` a second.

        Raises:
            TraceError: It is missing or something else.
        """
        value = self.fields.get(field)
        most = _MOST_TIME_S * per_s
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise self.error(field, f"must be a number from 0 to {most:g}, not {shown(value)}")
        return float(value) / per_s

    def tokens(self, field: str, least: int = 1) -> int:
        """The line's field as a count of tokens, `least` at least.

        Raises:
            TraceError: It is missing or something else.
        """
        return self.checked_tokens(field, self.fields.get(field), least)

    def checked_tokens(self, field: str, value: object, least: int = 1) -> int:
        """A value from deeper in the line as a count of tokens; `field` is its path.

        Raises:
            TraceError: It is none.
        """
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST_TOKENS:
            raise self.error(
                field, f"must be a whole number of tokens, {least} to {_MOST_TOKENS:,}, not {shown(value)}"
            )
        return value

    def items(self, field: str) -> list[Any]:
        """A list with something in it.

        Raises:
            TraceError: It is missing, empty or something else.
        """
        value = self.fields.get(field)
        if not isinstance(value, list) or not value:
            raise self.error(field, f"must be a list with one element at least, not {shown(value)}")
        return value

    def only(self, *known: str) -> None:
        """Refuse fields of other names.

        Raises:
            TraceError: There is one.
        """
        for field in self.fields:
            if field not in known:
                raise self.error(field, f"is not a field of this format; known are {', '.join(known)}")


def read_lines(file: str, text: str) -> Iterator[Line]:
    """The lines of `text` that are not blank.

    Args:
        file: The file's name, for messages.
        text: JSON lines.

    Raises:
        TraceError: A line is not a JSON object.
    """
    # not splitlines: a string may hold U+2028, which ends no line of JSON lines
    for number, raw in enumerate(text.split("\n"), 1):
        if not raw.strip():
            continue
        try:
            fields = parse_json(raw, most_bytes=_MOST_LINE)
        except MalformedError as error:
            raise TraceError(
                f"{file}:{number}: is not JSON: {error}; put one JSON object on each line"
            ) from None
        if not isinstance(fields, dict):
            raise TraceError(f"{file}:{number}: must be a JSON object, not {shown(fields)}")
        yield Line(file, number, fields)


def shown(value: object) -> str:
    """A value for a message, shortened."""
    if value is None:
        return "nothing"
    text = _short.repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
