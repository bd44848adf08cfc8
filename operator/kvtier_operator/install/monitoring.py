"""Objects for Prometheus and Grafana, for the operator's own metrics."""

from typing import Any, Final

from kvtier_operator.install.settings import Installation
from kvtier_operator.planning.base.promql import WINDOW, Alert
from kvtier_operator.planning.objects.monitoring.alerts import rules_object
from kvtier_operator.planning.objects.monitoring.grafana import (
    Dashboard,
    Variable,
    dashboard_object,
    in_grid,
    panel,
)

# Names of metrics: reconcile/observability/metrics.py, and Prometheus' client for `process_*`.
_OURS: Final = 'namespace="$namespace",job="$job"'
"""The dashboard's variables: one dashboard for every installation that a Prometheus sees."""
_RARE: Final = "1h"
"""Window of what happens less often than it is scraped."""


def panels() -> list[dict[str, Any]]:
    """Time series, two beside each other."""
    buckets = _rate("kvtier_reconcile_duration_seconds_bucket", "le")
    quantiles = {f"p{percent}": f"histogram_quantile({percent / 100}, {buckets})" for percent in (50, 95, 99)}
    processor = _of_pod(f"rate(process_cpu_seconds_total{{{_OURS}}}[{WINDOW}])")
    version = f"count by (version) (kvtier_build_info{{{_OURS}}})"
    started = _of_pod(f"process_start_time_seconds{{{_OURS}}}")
    rows: tuple[tuple[str, str, dict[str, str]], ...] = (
        ("KVCacheTiers by condition Ready", "short", {"{{ready}}": _sum("kvtier_resources", "ready")}),
        (
            "Operators that answer, by version; one of them leads",
            "short",
            {"{{version}}": version, "leading": f"sum(kvtier_leader{{{_OURS}}})"},
        ),
        (
            "Reconciliations a second, by result",
            "ops",
            {"{{result}}": _rate("kvtier_reconciles_total", "result")},
        ),
        ("Duration of a reconciliation, requests included", "s", quantiles),
        ("Resources waiting to be reconciled", "short", {"waiting": f"sum(kvtier_queue_depth{{{_OURS}}})"}),
        (
            f"Watches that began anew for trouble, in {_RARE}",
            "short",
            {"{{kind}}: {{cause}}": _increase("kvtier_watch_restarts_total", "kind, cause")},
        ),
        (
            "Writes a second, by verb and kind",
            "wps",
            {"{{verb}} {{kind}}": _rate("kvtier_api_writes_total", "verb, kind")},
        ),
        (
            f"Objects refused or not answered for, in {_RARE}",
            "short",
            {"{{error}}": _increase("kvtier_api_errors_total", "error")},
        ),
        ("Memory", "bytes", {"{{pod}}": _of_pod(f"process_resident_memory_bytes{{{_OURS}}}")}),
        ("Processor: share of one core", "percentunit", {"{{pod}}": processor}),
        ("Open files", "short", {"{{pod}}": _of_pod(f"process_open_fds{{{_OURS}}}")}),
        ("Time since its start", "s", {"{{pod}}": f"time() - {started}"}),
    )
    return in_grid([panel(*row) for row in rows])


def _sum(gauge: str, labels: str) -> str:
    return f"sum by ({labels}) ({gauge}{{{_OURS}}})"


def _rate(counter: str, labels: str) -> str:
    return f"sum by ({labels}) (rate({counter}{{{_OURS}}}[{WINDOW}]))"


def _increase(counter: str, labels: str) -> str:
    return f"sum by ({labels}) (increase({counter}{{{_OURS}}}[{_RARE}]))"


def _of_pod(expression: str) -> str:
    return f"max by (pod) ({expression})"


_UID: Final = "kvtier-operator"
_ALWAYS_THERE: Final = "kvtier_build_info"


def dashboard(install: Installation) -> dict[str, Any]:
    """The same dashboard for every installation: which of them is shown is chosen in Grafana."""
    shown = Dashboard(
        uid=_UID,
        title="kvtier's operator",
        tags=("operator",),
        heading="dashboard-of-the-operator",
        panels=panels(),
        variables=(
            Variable("namespace", "Namespace", f"label_values({_ALWAYS_THERE}, namespace)"),
            Variable("job", "Job", f'label_values({_ALWAYS_THERE}{{namespace="$namespace"}}, job)'),
        ),
    )
    return dashboard_object(install.metadata() | {"name": f"{install.name}-dashboard"}, f"{_UID}.json", shown)


def prometheus_rule(install: Installation) -> dict[str, Any]:
    """Alerts about the operator itself; those about engines and pickers come with each resource."""
    ours = f'namespace="{install.namespace}", job="{install.name}"'
    alerts = (
        Alert(
            "KvtierOperatorDown",
            f"absent(up{{{ours}}} == 1)",
            minutes=10,
            severity="warning",
            summary="kvtier's operator has not answered for 10 minutes.",
            description="Engines and pickers go on as they are; changes of KVCacheTiers wait.",
        ),
        Alert(
            "KvtierReconcilesFailing",
            f'sum(rate(kvtier_reconciles_total{{{ours}, result="failed"}}[10m])) > 0',
            minutes=15,
            severity="warning",
            summary="kvtier's operator has failed to reconcile for 15 minutes.",
            description="Its log and the conditions of the KVCacheTiers that are not Ready say why.",
        ),
    )
    return rules_object(install.metadata(), "kvtier-operator", (alert.rule({}) for alert in alerts))


def service_monitor(install: Installation) -> dict[str, Any]:
    """Scrapes the operator's own metrics."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": install.metadata(),
        "spec": {
            "selector": {"matchLabels": install.selector},
            "endpoints": [{"port": "metrics", "interval": "30s"}],
        },
    }
