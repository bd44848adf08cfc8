"""What people and other programs see of the operator: its metrics and its log."""

import json
import logging
import sys
from importlib.metadata import version
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.process_collector import ProcessCollector

from kvtier_common.log_records import OneLineRecords

REGISTRY: Final = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
RECONCILES: Final = Counter(
    "kvtier_reconciles_total",
    "Reconciliations by result: unchanged, changed, waiting (something is in the way), failed.",
    ["result"],
    registry=REGISTRY,
)
RECONCILE_SECONDS: Final = Histogram(
    "kvtier_reconcile_duration_seconds",
    "How long one reconciliation took, requests included.",
    buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30),
    registry=REGISTRY,
)
API_WRITES: Final = Counter(
    "kvtier_api_writes_total",
    "Writes sent to the API server, by verb and kind.",
    ["verb", "kind"],
    registry=REGISTRY,
)
API_ERRORS: Final = Counter(
    "kvtier_api_errors_total", "Requests that failed, by kind of error.", ["error"], registry=REGISTRY
)
QUEUE_DEPTH: Final = Gauge("kvtier_queue_depth", "Resources waiting to be reconciled.", registry=REGISTRY)
RESOURCES: Final = Gauge("kvtier_resources", "KVCacheTiers by condition Ready.", ["ready"], registry=REGISTRY)
WATCH_RESTARTS: Final = Counter(
    "kvtier_watch_restarts_total",
    "Watches that had to start anew for trouble, by kind and cause.",
    ["kind", "cause"],
    registry=REGISTRY,
)
LEADER: Final = Gauge(
    "kvtier_leader", "1 where this operator holds the Lease, 0 where it stands by.", registry=REGISTRY
)
BUILD: Final = Info("kvtier_build", "Version of the operator.", registry=REGISTRY)
BUILD.info({"version": version("kvtier")})
_OWN_LOGGERS: Final = ("kvtier_common", "kvtier_operator")
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


def set_up_logs(log_format: str, log_level: str) -> None:
    """Logs to standard error, `plain` or `json`; `debug` is of kvtier alone, as clients log whole bodies."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if log_format == "json" else logging.Formatter(_PLAIN))
    handler.addFilter(_WithoutKopfRetries())
    handler.addFilter(OneLineRecords())
    level = logging.getLevelNamesMapping()[log_level.upper()]
    logging.basicConfig(level=max(level, logging.INFO), handlers=[handler], force=True)
    for name in _OWN_LOGGERS:
        logging.getLogger(name).setLevel(level)
    logging.getLogger("aiohttp").setLevel(logging.WARNING)
    # it warns of what is meant to be: a thread of its own, without signals
    logging.getLogger("kopf").setLevel(logging.ERROR)
