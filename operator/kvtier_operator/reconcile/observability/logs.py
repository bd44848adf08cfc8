"""The operator's log: one line an entry, for people or for machines."""

import json
import logging
import sys
from typing import Final

from kvtier_common.log_records import OneLineRecords

_PLAIN: Final = "%(asctime)s %(levelname)s %(message)s"


class _Json(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_text:
            entry["exception"] = record.exc_text
        return json.dumps(entry)


class _WithoutKopfRetries(logging.Filter):
    """Drops Kopf's messages about retries: the operator's own watches log the same trouble once."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.name.startswith("kopf") and "failed; will retry" in record.getMessage())


def set_up_logs(log_format: str) -> None:
    """Logs to standard error.

    Args:
        log_format: `plain` or `json`.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if log_format == "json" else logging.Formatter(_PLAIN))
    handler.addFilter(_WithoutKopfRetries())
    handler.addFilter(OneLineRecords())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("aiohttp").setLevel(logging.WARNING)
    # it warns of what is meant to be: a thread of its own, without signals
    logging.getLogger("kopf").setLevel(logging.ERROR)
