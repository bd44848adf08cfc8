"""Panels of the operator's own dashboard: what it serves, its work, the API server, its process.

Names of metrics: kvtier_operator/reconcile/observability.py, and Prometheus' client for `process_*`.
"""

from typing import Any, Final

from kvtier_operator.planning.objects.monitoring.grafana.panel import WINDOW, panel, placed

_OURS: Final = 'namespace="$namespace",job="$job"'
"""The dashboard's variables: one dashboard for every installation that a Prometheus sees."""
_RARE: Final = "1h"
"""Window of what happens less often than it is scraped."""
_QUANTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def panels() -> list[dict[str, Any]]:
    """Time series, two beside each other."""
    return placed([*_served(), *_work(), *_api_server(), *_process()])


def _served() -> list[dict[str, Any]]:
    return [
        panel("KVCacheTiers by condition Ready", "short", {"{{ready}}": _sum("kvtier_resources", "ready")}),
        panel(
            "Operators that answer, by version",
            "short",
            {"{{version}}": f"count by (version) (kvtier_build_info{{{_OURS}}})"},
        ),
    ]


def _work() -> list[dict[str, Any]]:
    buckets = _rate("kvtier_reconcile_duration_seconds_bucket", "le")
    return [
        panel(
            "Reconciliations a second, by result",
            "ops",
            {"{{result}}": _rate("kvtier_reconciles_total", "result")},
        ),
        panel(
            "Duration of a reconciliation, requests included",
            "s",
            {legend: f"histogram_quantile({quantile}, {buckets})" for legend, quantile in _QUANTILES.items()},
        ),
        panel(
            "Resources waiting to be reconciled",
            "short",
            {"waiting": f"sum(kvtier_queue_depth{{{_OURS}}})"},
        ),
    ]


def _api_server() -> list[dict[str, Any]]:
    return [
        panel(
            f"Watches that began anew for trouble, in {_RARE}",
            "short",
            {"{{kind}}: {{cause}}": _increase("kvtier_watch_restarts_total", "kind, cause")},
        ),
        panel(
            "Writes a second, by verb and kind",
            "wps",
            {"{{verb}} {{kind}}": _rate("kvtier_api_writes_total", "verb, kind")},
        ),
        panel(
            f"Objects refused or not answered for, in {_RARE}",
            "short",
            {"{{error}}": _increase("kvtier_api_errors_total", "error")},
        ),
    ]


def _process() -> list[dict[str, Any]]:
    processor = f"rate(process_cpu_seconds_total{{{_OURS}}}[{WINDOW}])"
    started = _of_pod(f"process_start_time_seconds{{{_OURS}}}")
    return [
        panel("Memory", "bytes", {"{{pod}}": _of_pod(f"process_resident_memory_bytes{{{_OURS}}}")}),
        panel("Processor: share of one core", "percentunit", {"{{pod}}": _of_pod(processor)}),
        panel("Open files", "short", {"{{pod}}": _of_pod(f"process_open_fds{{{_OURS}}}")}),
        panel("Time since its start", "s", {"{{pod}}": f"time() - {started}"}),
    ]


def _sum(gauge: str, labels: str) -> str:
    return f"sum by ({labels}) ({gauge}{{{_OURS}}})"


def _rate(counter: str, labels: str) -> str:
    return f"sum by ({labels}) (rate({counter}{{{_OURS}}}[{WINDOW}]))"


def _increase(counter: str, labels: str) -> str:
    return f"sum by ({labels}) (increase({counter}{{{_OURS}}}[{_RARE}]))"


def _of_pod(expression: str) -> str:
    return f"max by (pod) ({expression})"
