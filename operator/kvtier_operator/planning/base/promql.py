"""PromQL over the metrics of one resource's engines and picker, for alerts and dashboard alike.

Names of metrics: vLLM 0.32, vllm/v1/metrics/loggers.py and offloading/metrics.py of its KV connectors;
kvtier_connector/vllm/metrics/ for `vllm:kvtier_*`. Prometheus adds `_total` to counters.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from kvtier_common.version import PAGES_URL
from kvtier_operator.planning.base.names import Names

RUNBOOKS_URL: Final = f"{PAGES_URL}/operations/alerts.html"
"""docs/operations/alerts.md, with a heading for each alert."""
WINDOW: Final = "$__rate_interval"
"""Grafana's window of at least four scrapes. Source: Grafana's documentation, Prometheus data source."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert."""

    name: str  # in CamelCase, with the kind in front
    expr: str  # PromQL; each series of its result is one alert
    minutes: int  # how long it must hold
    severity: str  # `warning` or `critical`
    summary: str  # what is wrong, after the resource's name where it is about one
    description: str  # what was seen, and where to look

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
    """Expressions over the series of one resource's engines, or of its picker."""

    matchers: str  # matchers of their labels, without braces

    @classmethod
    def of(cls, names: Names, job: str) -> Self:
        """Those of one of a resource's objects, by its name."""
        return cls(f'namespace="{names.namespace}",job="{job}"')

    def rate(self, counter: str, window: str, *, by: str = "") -> str:
        """Events a second of all engines together, or for each value of the label `by`."""
        return f"sum{_by(by)}(rate({counter}{{{self.matchers}}}[{window}]))"

    def rates(self, counters: Mapping[str, str]) -> dict[str, str]:
        """Events a second for a panel, by legend; counters are named without their `_total`."""
        return {legend: self.rate(f"{counter}_total", WINDOW) for legend, counter in counters.items()}

    def gauge(self, name: str, *, by: str = "") -> str:
        """Sum of a gauge over all engines, or for each value of the label `by`."""
        return f"sum{_by(by)}({name}{{{self.matchers}}})"

    def gauges(self, names: Mapping[str, str]) -> dict[str, str]:
        """Sums for a panel, by legend."""
        return {legend: self.gauge(name) for legend, name in names.items()}

    def quantile(self, histogram: str, quantile: float, window: str) -> str:
        """Quantile of a histogram over all engines."""
        buckets = self.rate(f"{histogram}_bucket", window, by="le")
        return f"histogram_quantile({quantile}, {buckets})"

    def hit_share(self, window: str) -> str:
        """Share of prompt tokens found in any tier, 0 to 1; nothing while no prompt comes."""
        device = self.rate("vllm:prefix_cache_hits_total", window)
        tiers = self.rate("vllm:external_prefix_cache_hits_total", window)
        return f"({device} + {tiers}) / {self.queried_tokens(window)}"

    def queried_tokens(self, window: str) -> str:
        """Prompt tokens a second that are looked for in the cache."""
        return self.rate("vllm:prefix_cache_queries_total", window)

    def loaded_tokens_per_load_second(self, window: str) -> str:
        """Tokens that one second of loading brings back."""
        hits = self.rate("vllm:external_prefix_cache_hits_total", window)
        return f"{hits} / {self.rate('vllm:kv_offload_load_time_total', window)}"

    def computed_tokens_per_prefill_second(self, window: str) -> str:
        """Tokens that one second of a request's prefill computes."""
        computed = self.rate("vllm:request_prefill_kv_computed_tokens_sum", window)
        return f"{computed} / {self.rate('vllm:request_prefill_time_seconds_sum', window)}"

    def saved_s(self, window: str) -> str:
        """Seconds of prefill that loading saved in a window, less those that it took."""
        hits = self._increase("vllm:external_prefix_cache_hits_total", window)
        pace = self.computed_tokens_per_prefill_second(window)
        return f"{hits} / ({pace}) - {self._increase('vllm:kv_offload_load_time_total', window)}"

    def _increase(self, counter: str, window: str) -> str:
        return f"sum(increase({counter}{{{self.matchers}}}[{window}]))"


def _by(label: str) -> str:
    return f" by ({label}) " if label else ""
