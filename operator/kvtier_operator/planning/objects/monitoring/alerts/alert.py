"""What an alert is made of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvtier_common.version import PAGES_URL

RUNBOOKS_URL: Final = f"{PAGES_URL}/operations/alerts.html"
"""docs/operations/alerts.md, with a heading for each alert."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert.

    Attributes:
        name: In CamelCase, with the kind in front.
        expr: PromQL; each series of its result is one alert.
        minutes: How long it must hold.
        severity: `warning` or `critical`.
        summary: What is wrong, after the resource's name where it is about one.
        description: What was seen, and where to look.
    """

    name: str
    expr: str
    minutes: int
    severity: str
    summary: str
    description: str

    @property
    def runbook_url(self) -> str:
        """Where its page says what to do: the heading is the alert's name."""
        return f"{RUNBOOKS_URL}#{self.name.lower()}"

    def rule(self, labels: Mapping[str, str], about: str = "") -> dict[str, Any]:
        """As a rule of Prometheus.

        Args:
            labels: What the alert has beside its severity.
            about: Whose it is, in front of the summary.
        """
        return {
            "alert": self.name,
            "expr": self.expr,
            "for": f"{self.minutes}m",
            "labels": {"severity": self.severity, **labels},
            "annotations": {
                "summary": f"{about}{self.summary}",
                "description": self.description,
                "runbook_url": self.runbook_url,
            },
        }


def rules_object(
    metadata: Mapping[str, Any], group: str, rules: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """A PrometheusRule with one group of rules.

    Source of the form: prometheus-operator, pkg/apis/monitoring/v1/prometheusrule_types.go.
    """
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": metadata,
        "spec": {"groups": [{"name": group, "rules": [*rules]}]},
    }
