"""Logs in which no text of others forges a line, commands a terminal or goes on without end."""

import logging
import traceback
from typing import Final

from kvtier_common.one_line import one_line, visible

_MOST_MESSAGE: Final = 4096
_MOST_LINES: Final = 200  # of a traceback, whose messages may quote others
_MOST_CHARACTERS: Final = 1000


class OneLineRecords(logging.Filter):
    """Put on a handler: each message on one line, and of an exception lines without control characters."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keeps every record."""
        record.msg, record.args = one_line(record.getMessage(), _MOST_MESSAGE), ()
        if record.exc_info and (error := record.exc_info[1]) and not record.exc_text:
            record.exc_text, record.exc_info = _lines(error), None  # else a formatter would write its own
        return True


def _lines(error: BaseException) -> str:
    lines = "".join(traceback.format_exception(error)).rstrip("\n").split("\n")
    return "\n".join(visible(line[:_MOST_CHARACTERS]) for line in lines[:_MOST_LINES])
