"""The picker's log: one JSON object a line, or plain lines for people."""

import logging
from enum import StrEnum
from typing import Final

from pythonjsonlogger.json import JsonFormatter

from kvtier_common.log_records import OneLineRecords

_FIELDS: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"
_RENAMED: Final = {"asctime": "time", "levelname": "level", "name": "logger"}


class LogFormat(StrEnum):
    """How lines are written."""

    JSON = "json"
    PLAIN = "plain"


def set_up_logs(log_format: LogFormat, level: str) -> None:
    """Sends all logs to standard error.

    Args:
        log_format: How lines are written.
        level: The least that is told: debug, info, warning or error. Debug tells of every pick.
    """
    handler = logging.StreamHandler()
    if log_format is LogFormat.JSON:
        handler.setFormatter(JsonFormatter(_FIELDS, rename_fields=_RENAMED, datefmt="%Y-%m-%dT%H:%M:%S%z"))
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    handler.addFilter(OneLineRecords())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for noisy in ("aiohttp.access", "numba", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
