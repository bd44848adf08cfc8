"""PromQL over the metrics of one resource's engines and picker, for alerts and dashboard alike.

Names of metrics: vLLM 0.32, vllm/v1/metrics/loggers.py and offloading/metrics.py of its KV connectors;
kvtier_connector/vllm/metrics/ for `vllm:kvtier_*`. Prometheus adds `_total` to
counters.
"""

from dataclasses import dataclass
from typing import Self

from kvtier_operator.api.spec.backend import Ability
from kvtier_operator.planning.backends import traits_of
from kvtier_operator.planning.base.names import Names
from kvtier_operator.planning.flavors import flavor_traits
from kvtier_operator.planning.plan import Plan


@dataclass(frozen=True, slots=True)
class Queries:
    """Expressions over one resource's series.

    Attributes:
        engine: Label matchers of the engines' series, without braces.
        picker: The same of the picker's.
        moves_by_vllm: Whether vLLM's offloading counts loads and stores.
        kvtier: Whether kvtier's connector tells how full the tier is.
        kvtier_disk: Whether it has a disk tier to tell of.
        picker_hit_ratio: The picker's histogram of matched prefixes; None where it has none.
    """

    engine: str
    picker: str
    moves_by_vllm: bool
    kvtier: bool
    kvtier_disk: bool
    picker_hit_ratio: str | None

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """Expressions for `plan`'s objects."""
        names, backend = Names.of(plan), plan.resource.spec.backend
        return cls(
            engine=_matchers(names, names.engine),
            picker=_matchers(names, names.picker),
            moves_by_vllm=traits_of(backend).offloading,
            kvtier=Ability.TELLS_OF_TIERS in backend.abilities,
            kvtier_disk=Ability.TELLS_OF_TIERS in backend.abilities and plan.tiers.disk is not None,
            picker_hit_ratio=flavor_traits(plan.resource.spec.router.flavor).hit_ratio,
        )

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


def _matchers(names: Names, job: str) -> str:
    return f'namespace="{names.namespace}",job="{job}"'


def _by(label: str) -> str:
    return f" by ({label}) " if label else ""
