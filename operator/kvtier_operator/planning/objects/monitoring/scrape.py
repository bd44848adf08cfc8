"""What tells Prometheus to scrape engines and picker."""

from typing import Any, Final

from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.objects.gateway.providers import provider_of
from kvtier_operator.planning.objects.monitoring.labels import monitoring_metadata
from kvtier_operator.planning.plan import Plan

_PORTS: Final = {Component.ENGINE: "http", Component.PICKER: "http-metrics"}
"""Port names, the same in the Services and in the containers."""
_SKIP_VERIFY: Final = {"insecureSkipVerify": True}
"""Pods are asked by address, which no certificate names; as pickers and the kubelet do by themselves."""


def scrape_objects(plan: Plan) -> tuple[dict[str, Any], ...]:
    """One object for the engines and one for the picker; Prometheus names the job after it or its Service.

    ServiceMonitors, or PodMonitorings where Google Cloud's managed Prometheus scrapes. Sources:
    prometheus-operator, pkg/apis/monitoring/v1/servicemonitor_types.go; llm-d-router v0.10.0,
    config/charts/routerlib/templates/_gke.yaml, without its token: these pickers serve metrics without one.
    """
    if not plan.resource.spec.observability.service_monitor:
        return ()
    if provider_of(plan.resource.spec.router).managed_prometheus:
        api_version, kind, tls_field = "monitoring.googleapis.com/v1", "PodMonitoring", "tls"
    else:
        api_version, kind, tls_field = "monitoring.coreos.com/v1", "ServiceMonitor", "tlsConfig"
    names = Names.of(plan)
    return tuple(
        {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": monitoring_metadata(plan, name, component),
            "spec": {
                "selector": {"matchLabels": names.selector(component)},
                "endpoints": [_endpoint(plan, component, tls_field)],
            },
        }
        for name, component in ((names.engine, Component.ENGINE), (names.picker, Component.PICKER))
    )


def _endpoint(plan: Plan, component: Component, tls_field: str) -> dict[str, Any]:
    interval_s = plan.resource.spec.observability.interval_seconds
    where = {"port": _PORTS[component], "path": "/metrics", "interval": f"{interval_s}s"}
    if component is Component.ENGINE and plan.resource.spec.engine.extra_args.serves_tls:
        return where | {"scheme": "https", tls_field: dict(_SKIP_VERIFY)}
    return where
