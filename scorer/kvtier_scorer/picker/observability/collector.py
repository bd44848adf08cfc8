"""The picker's metrics, for Prometheus."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from kvtier_common.tier import Tier
from kvtier_scorer.picker.observability.counters import DECISION_BUCKETS_S, PickerCounters
from kvtier_scorer.scheduling.pods import PodTable

_PREFIX: Final = "kvtier_picker_"


@dataclass(frozen=True, slots=True, eq=False)
class MetricsSnapshot:
    """The numbers at one moment, taken where they are counted, so that another thread may write them down.

    Attributes:
        counters: A copy of what is counted.
        blocks: Blocks held and blocks of room, for each pod by name and tier.
        precise: Pods that say themselves what they hold.
        stale: Pods without a recent reading.
        failures: Pods whose last scrape brought nothing, by kind of trouble.
        pods: Pods that may be picked.
        index_bytes: Memory of the index.
        calls: Open calls.
        skipped_pods: Pods that are not asked for tokens for now.
    """

    counters: PickerCounters
    blocks: Mapping[tuple[str, Tier], tuple[int, int]]
    precise: int
    stale: int
    failures: Mapping[str, int]
    pods: int
    index_bytes: int
    calls: int
    skipped_pods: int = 0

    def collect(self) -> Iterator[Metric]:
        """The families, as prometheus-client wants them."""
        yield _counter(
            "requests_refused", "Requests answered by the picker itself.", "status", self.counters.refusals
        )
        yield _counter(
            "responses",
            "Responses of engines; 0: not told by the gateway.",
            "status",
            self.counters.responses,
        )
        picks = CounterMetricFamily(_PREFIX + "picks", "Requests sent to a pod.", labels=["pod", "endpoint"])
        for (pod, address), count in self.counters.picks.items():
            picks.add_metric([pod, address], count)
        yield picks
        yield self._decision()
        yield from self._tokens()
        yield CounterMetricFamily(
            _PREFIX + "served_elsewhere",
            "Responses from another pod than the one that was picked.",
            value=self.counters.served_elsewhere,
        )
        yield CounterMetricFamily(
            _PREFIX + "connections_cut_off",
            "Connections ended by the picker: most of their calls were reset before they were answered.",
            value=self.counters.connections_cut_off,
        )
        yield from self._index()
        yield GaugeMetricFamily(_PREFIX + "pods", "Pods that may be picked.", value=self.pods)
        yield GaugeMetricFamily(
            _PREFIX + "pods_stale", "Of those, without a recent reading of their metrics.", value=self.stale
        )
        yield GaugeMetricFamily(
            _PREFIX + "pods_precise",
            "Of those, whose KV events say what they hold; the others are guessed.",
            value=self.precise,
        )
        failures = GaugeMetricFamily(
            _PREFIX + "scrapes_failing", "Pods whose last scrape brought nothing.", labels=["reason"]
        )
        for reason, count in self.failures.items():
            failures.add_metric([reason], count)
        yield failures
        yield GaugeMetricFamily(
            _PREFIX + "tokenize_pods_left_alone",
            "Pods that are not asked for tokens for now: they failed, or took too long.",
            value=self.skipped_pods,
        )
        yield GaugeMetricFamily(_PREFIX + "open_streams", "ext_proc streams that are open.", value=self.calls)

    def _decision(self) -> Metric:
        family = HistogramMetricFamily(
            _PREFIX + "decision_seconds", "From the end of a request's body to its endpoint."
        )
        bounds = [*(f"{bound:g}" for bound in DECISION_BUCKETS_S), "+Inf"]
        family.add_metric(
            [], list(zip(bounds, accumulate(self.counters.decisions), strict=True)), self.counters.decision_s
        )
        return family

    def _tokens(self) -> Iterator[Metric]:
        yield CounterMetricFamily(
            _PREFIX + "prompt_tokens",
            "Tokens of picked requests, as the picker counts them.",
            value=self.counters.prompt_tokens,
        )
        predicted = CounterMetricFamily(
            _PREFIX + "predicted_hit_tokens",
            "Tokens that a tier of the picked pod was believed to hold; tiers overlap.",
            labels=["tier"],
        )
        for tier, tokens in self.counters.matched_tokens.items():
            predicted.add_metric([tier.label], tokens)
        yield predicted
        queries = CounterMetricFamily(
            _PREFIX + "confirmed_query_tokens",
            "Tokens that the engines asked their device cache for, and then the tiers beyond it.",
            labels=["cache"],
        )
        hits = CounterMetricFamily(
            _PREFIX + "confirmed_hit_tokens", "Tokens that they found there.", labels=["cache"]
        )
        confirmed = self.counters.confirmed
        for cache, asked, found in (
            ("device", confirmed.queries, confirmed.hits),
            ("external", confirmed.external_queries, confirmed.external_hits),
        ):
            queries.add_metric([cache], asked)
            hits.add_metric([cache], found)
        yield queries
        yield hits

    def _index(self) -> Iterator[Metric]:
        used = GaugeMetricFamily(
            _PREFIX + "index_blocks", "Blocks that the index believes a tier to hold.", labels=["pod", "tier"]
        )
        room = GaugeMetricFamily(
            _PREFIX + "tier_capacity_blocks", "Blocks that a tier has room for.", labels=["pod", "tier"]
        )
        for (pod, tier), (blocks, capacity) in self.blocks.items():
            used.add_metric([pod, tier.label], blocks)
            room.add_metric([pod, tier.label], capacity)
        yield used
        yield room
        yield GaugeMetricFamily(
            _PREFIX + "index_bytes", "Memory of the prefix index.", value=self.index_bytes
        )


def metrics_snapshot(
    counters: PickerCounters, table: PodTable, stale: int, failures: Mapping[str, int], calls: int
) -> MetricsSnapshot:
    """The numbers now."""
    counters.forget_pods(table.is_there)
    return MetricsSnapshot(
        counters=counters.copy(),
        blocks=dict(_blocks(table)),
        precise=_precise(table),
        stale=stale,
        failures=dict(failures),
        pods=len(table),
        index_bytes=table.index.nbytes,
        calls=calls,
    )


def _precise(table: PodTable) -> int:
    numbers = (table.number(pod.address) for pod in table)
    return sum(number is not None and table.index.is_precise(number) for number in numbers)


def _blocks(table: PodTable) -> Iterator[tuple[tuple[str, Tier], tuple[int, int]]]:
    index = table.index
    for pod in table:
        number = table.number(pod.address)
        if number is None:
            continue
        for tier in Tier:
            if capacity := index.capacity(number, tier):
                yield (pod.name, tier), (index.used(number, tier), capacity)


def _counter(name: str, help_text: str, label: str, counts: Mapping[int, int]) -> Metric:
    family = CounterMetricFamily(_PREFIX + name, help_text, labels=[label])
    for value, count in sorted(counts.items()):
        family.add_metric([str(value)], count)
    return family
