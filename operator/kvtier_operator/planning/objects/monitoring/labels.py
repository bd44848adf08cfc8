"""The labels by which a Prometheus or a Grafana selects a resource's objects."""

from typing import Any

from kvtier_operator.api.resource import Observability, Spec
from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.plan import Plan


def monitoring_metadata(plan: Plan, name: str, component: Component) -> dict[str, Any]:
    """Metadata of an object for Prometheus or Grafana, with the labels that these select it by."""
    names = Names.of(plan)
    labels = {**plan.resource.spec.observability.labels, **names.labels(component)}
    return {**names.metadata(name, component), "labels": labels}


def monitoring_notes(spec: Spec) -> tuple[str, ...]:
    """A line for each setting of objects that the resource does not ask for."""
    wanted = spec.observability
    any_object = wanted.service_monitor or wanted.prometheus_rule or wanted.dashboard
    notes = []
    if wanted.labels and not any_object:
        notes.append(
            "spec.observability.labels changes nothing: set serviceMonitor, prometheusRule or dashboard, "
            "whose objects have them, or leave it out"
        )
    if wanted.interval_seconds != Observability().interval_seconds and not wanted.service_monitor:
        notes.append(
            "spec.observability.intervalSeconds changes nothing: set serviceMonitor, which has it, or leave "
            "it out"
        )
    return (*notes,)
