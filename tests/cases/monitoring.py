"""The monitoring objects of a resource, and the metrics that their expressions read."""

import json
from collections.abc import Iterator
from typing import Any

import promql_parser
from tests.cases.planning import resource

from kvtier_operator.planning.objects.monitoring import monitoring_objects
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

Object = dict[str, Any]
ALL = {"serviceMonitor": True, "prometheusRule": True, "dashboard": True}
# Grafana fills it in before Prometheus sees the expression.
GRAFANA_WINDOW = "$__rate_interval"


def monitoring(observability: dict[str, bool] | None = None, **spec: Any) -> dict[tuple[str, str], Object]:  # noqa: ANN401 - as in YAML
    """Objects by kind and name."""
    plan = make_plan(
        resource(observability=ALL if observability is None else observability, **spec), Observed()
    )
    return {(each["kind"], each["metadata"]["name"]): each for each in monitoring_objects(plan)}


def alerts(**spec: Any) -> dict[str, Object]:  # noqa: ANN401 - as in YAML
    """Alerts by name."""
    rule = monitoring(**spec)["PrometheusRule", "case"]
    return {each["alert"]: each for group in rule["spec"]["groups"] for each in group["rules"]}


def shown(**spec: Any) -> Object:  # noqa: ANN401 - as in YAML
    """The dashboard as Grafana reads it."""
    [text] = monitoring(**spec)["ConfigMap", "case-dashboard"]["data"].values()
    found: Object = json.loads(text)
    return found


def expressions(**spec: Any) -> Iterator[str]:  # noqa: ANN401 - as in YAML
    """Every expression of alerts and panels, as Prometheus gets it."""
    yield from (each["expr"] for each in alerts(**spec).values())
    for panel in shown(**spec)["panels"]:
        yield from (target["expr"].replace(GRAFANA_WINDOW, "1m") for target in panel["targets"])


def read_metrics(**spec: Any) -> set[str]:  # noqa: ANN401 - as in YAML
    """Names of the series that alerts and dashboard read."""
    return set().union(*(metrics_of(expression) for expression in expressions(**spec)))


def metrics_of(expression: str) -> set[str]:
    """Names of the series that an expression reads.

    Raises:
        ValueError: Prometheus would not take it.
    """
    return set(_names(promql_parser.parse(expression)))


def _names(node: promql_parser.Expr) -> Iterator[str]:
    match node:
        case promql_parser.VectorSelector():
            yield node.name or ""
        case promql_parser.MatrixSelector():
            yield node.vector_selector.name or ""
        case promql_parser.BinaryExpr():
            yield from _names(node.lhs)
            yield from _names(node.rhs)
        case promql_parser.Call():
            for each in node.args:
                yield from _names(each)
        case promql_parser.AggregateExpr() | promql_parser.ParenExpr():
            yield from _names(node.expr)
        case promql_parser.NumberLiteral():
            return
        case _:
            raise TypeError(f"a kind of expression that is not used yet: {node!r}")
