"""The picker's log: JSON or plain lines, and what clients can bring about kept from filling it."""

import logging
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from traceback import extract_tb
from typing import Final, TypeAlias

from pythonjsonlogger.json import JsonFormatter

from kvtier_common.log_records import OneLineRecords

_MOST: Final = 64
_DELETE: Final = 0x7F
_Kind: TypeAlias = type[BaseException] | str
_FIELDS: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"
_RENAMED: Final = {"asctime": "time", "levelname": "level", "name": "logger"}


def printable(text: str) -> str:
    """The text in visible ASCII, and not more than 64 characters of it.

    A client's identifiers may hold line breaks, which forge lines, or a terminal's own commands.
    """
    shown = "".join(
        sign if " " < sign < chr(_DELETE) and sign != "\\" else sign.encode("unicode_escape").decode()
        for sign in text[:_MOST].encode(errors="replace").decode()
    ).replace(" ", "\\x20")
    return shown if len(text) <= _MOST else shown + "..."


def error_location(error: BaseException) -> str:
    """The class of an error and the line that raised it, without its message, which may quote a body."""
    frames = extract_tb(error.__traceback__)
    if not frames:
        return type(error).__name__
    last = frames[-1]
    return f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno} in {last.name}"


class LogRateLimiter:
    """Logs each kind of line at most once in `every_s`, and how often it was left out in between."""

    def __init__(self, log: logging.Logger, every_s: float, clock: Callable[[], float]) -> None:
        self._log = log
        self._every_s = every_s
        self._clock = clock
        self._logged_at_s: dict[_Kind, float] = {}
        self._suppressed: dict[_Kind, int] = {}

    def log(self, level: int, kind: _Kind, message: str, *args: object) -> None:
        """Writes a line, unless one of its kind was just now; what clients chose is `printable` first."""
        now_s = self._clock()
        if now_s - self._logged_at_s.get(kind, float("-inf")) < self._every_s:
            self._suppressed[kind] = self._suppressed.get(kind, 0) + 1
            return
        self._logged_at_s[kind] = now_s
        suppressed = self._suppressed.pop(kind, 0)
        if suppressed:
            message += " (and %d times more since this was last told)"
            args = (*args, suppressed)
        self._log.log(level, message, *args)


class LogFormat(StrEnum):
    """How lines are written."""

    JSON = "json"
    PLAIN = "plain"


def set_up_logs(log_format: LogFormat, level: str) -> None:
    """Sends all logs to standard error, from a level on: debug, info, warning or error."""
    handler = logging.StreamHandler()
    if log_format is LogFormat.JSON:
        handler.setFormatter(JsonFormatter(_FIELDS, rename_fields=_RENAMED, datefmt="%Y-%m-%dT%H:%M:%S%z"))
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    handler.addFilter(OneLineRecords())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for noisy in ("aiohttp.access", "numba", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
