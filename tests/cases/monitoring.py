"""The monitoring objects of a resource, and the metrics that their expressions read."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.cases.planning import resource
from tests.cases.promql import Series, all_read

from kvtier_operator.install.monitoring import dashboard
from kvtier_operator.install.settings import Installation
from kvtier_operator.planning.objects.monitoring import monitoring_objects
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

Object = dict[str, Any]
ALL = {"serviceMonitor": True, "prometheusRule": True, "dashboard": True}
# Grafana fills them in before Prometheus sees the expression.
GRAFANA_WINDOWS = re.compile(r"\$__(rate_interval|range)")


def monitoring(observability: dict[str, Any] | None = None, **spec: Any) -> dict[tuple[str, str], Object]:  # noqa: ANN401 - as in YAML
    """Objects by kind and name."""
    plan = make_plan(
        resource(observability=ALL if observability is None else observability, **spec), Observed()
    )
    return {
        (document["kind"], document["metadata"]["name"]): document for document in monitoring_objects(plan)
    }


def alerts(**spec: Any) -> dict[str, Object]:  # noqa: ANN401 - as in YAML
    """Alerts by name."""
    rule = monitoring(**spec)["PrometheusRule", "case"]
    return {rule["alert"]: rule for group in rule["spec"]["groups"] for rule in group["rules"]}


def grafana_dashboard(**spec: Any) -> Object:  # noqa: ANN401 - as in YAML
    """The dashboard as Grafana reads it."""
    [text] = monitoring(**spec)["ConfigMap", "case-dashboard"]["data"].values()
    found: Object = json.loads(text)
    return found


def expressions(**spec: Any) -> Iterator[str]:  # noqa: ANN401 - as in YAML
    """Every expression of alerts and panels, as Prometheus gets it."""
    yield from (alert["expr"] for alert in alerts(**spec).values())
    yield from (expression for expression, _ in targets(grafana_dashboard(**spec)))


def targets(model: Object) -> Iterator[tuple[str, frozenset[str]]]:
    """Every expression of a dashboard, as Prometheus gets it, and the labels that its legend shows."""
    for panel in model["panels"]:
        for target in panel["targets"]:
            legend = frozenset(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            yield GRAFANA_WINDOWS.sub("1m", target["expr"]), legend


def read_series(**spec: Any) -> Series:  # noqa: ANN401 - as in YAML
    """Series that alerts and dashboard read, and the labels that they ask of them."""
    return all_read(expressions(**spec))


def read_metrics(**spec: Any) -> set[str]:  # noqa: ANN401 - as in YAML
    """Names of the series that alerts and dashboard read."""
    return set(read_series(**spec))


def shown_of_operator() -> Object:
    """The operator's own dashboard as Grafana reads it."""
    [text] = dashboard(Installation())["data"].values()
    found: Object = json.loads(text)
    return found
