"""PromQL over the metrics of one resource's engines and picker, for alerts and dashboard alike.

Names of metrics: vLLM 0.32, vllm/v1/metrics/loggers.py and offloading/metrics.py of its KV connectors;
kvtier_connector/vllm/metrics/ for `vllm:kvtier_*`. Prometheus adds `_total` to
counters.
"""

from dataclasses import dataclass
from typing import Self

from kvtier_common.tier import Tier
from kvtier_operator.api.spec.backend import Ability
from kvtier_operator.planning.backends import traits_of
from kvtier_operator.planning.base.names import Names
from kvtier_operator.planning.base.promql import Series
from kvtier_operator.planning.flavors import flavor_traits
from kvtier_operator.planning.plan import Plan


@dataclass(frozen=True, slots=True)
class Queries(Series):
    """Expressions over one resource's series.

    Attributes:
        picker: Label matchers of the picker's series, without braces.
        moves_by_vllm: Whether vLLM's offloading counts loads and stores.
        tiers: Those that engines tell of beside the device's own cache.
        picker_hit_ratio: The picker's histogram of matched prefixes; None where it has none.
    """

    picker: str
    moves_by_vllm: bool
    tiers: tuple[Tier, ...]
    picker_hit_ratio: str | None

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """Expressions for `plan`'s objects."""
        names, backend = Names.of(plan), plan.resource.spec.backend
        tell = Ability.TELLS_OF_TIERS in backend.abilities
        return cls(
            engine=_matchers(names, names.engine),
            picker=_matchers(names, names.picker),
            moves_by_vllm=traits_of(backend).offloading,
            tiers=tuple(tier for tier in plan.tiers.by_tier if tell and tier is not Tier.GPU),
            picker_hit_ratio=flavor_traits(plan.resource.spec.router.flavor).hit_ratio,
        )

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
