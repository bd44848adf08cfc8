"""Expressions over the series of one resource's engines, and what an alert is made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvtier_common.version import PAGES_URL

RUNBOOKS_URL: Final = f"{PAGES_URL}/operations/alerts.html"
"""docs/operations/alerts.md, with a heading for each alert."""
WINDOW: Final = "$__rate_interval"
"""Grafana's window of at least four scrapes. Source: Grafana's documentation, Prometheus data source."""


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

    def rule(self, labels: Mapping[str, str], about: str = "") -> dict[str, Any]:
        """As a rule of Prometheus; `runbook_url` leads to the heading of the alert's name.

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
                "runbook_url": f"{RUNBOOKS_URL}#{self.name.lower()}",
            },
        }


@dataclass(frozen=True, slots=True)
class Series:
    """Expressions over one resource's engines.

    Attributes:
        engine: Label matchers of their series, without braces.
    """

    engine: str

    def rate(self, counter: str, window: str, *, by: str = "") -> str:
        """Events a second of all engines together, or for each value of the label `by`."""
        return f"sum{_by(by)}(rate({counter}{{{self.engine}}}[{window}]))"

    def gauge(self, name: str, *, by: str = "") -> str:
        """Sum of a gauge over all engines, or for each value of the label `by`."""
        return f"sum{_by(by)}({name}{{{self.engine}}})"

    def quantile(self, histogram: str, quantile: float, window: str) -> str:
        """Quantile of a histogram over all engines."""
        buckets = self.rate(f"{histogram}_bucket", window, by="le")
        return f"histogram_quantile({quantile}, {buckets})"


def _by(label: str) -> str:
    return f" by ({label}) " if label else ""
