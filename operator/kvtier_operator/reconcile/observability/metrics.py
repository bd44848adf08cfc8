"""The operator's own metrics; their names do not change (docs/operations/operator.md lists them)."""

from importlib.metadata import version
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.process_collector import ProcessCollector

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
BUILD: Final = Info("kvtier_build", "Version of the operator.", registry=REGISTRY)
BUILD.info({"version": version("kvtier")})
