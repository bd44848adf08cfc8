"""The picker's metrics, for Prometheus."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from kvtier_common.tier import OF_A_POD, Tier
from kvtier_scorer.picker.observability.counters import DECISION_BUCKETS_S, PickerCounters
from kvtier_scorer.scheduling.pods import PodTable

_PREFIX: Final = "kvtier_picker_"
_Samples: TypeAlias = Mapping[Any, float]  # by the values of their labels, a tuple


@dataclass(frozen=True, slots=True, eq=False)
class MetricsSnapshot:
    """The numbers at one moment, taken where they are counted, so that another thread may write them down."""

    counters: PickerCounters
    # blocks held and the most that are, for each pod by name and tier
    blocks: Mapping[tuple[str, Tier], tuple[int, int]]
    precise: int  # pods that say themselves what they hold
    stale: int  # pods without a recent reading
    failures: Mapping[str, int]  # pods whose last scrape brought nothing, by kind of trouble
    pods: int
    index_bytes: int
    calls: int  # open calls
    skipped_pods: int = 0  # pods that are not asked for tokens for now
    kept_prompts: int = 0  # whose pod is kept

    def collect(self) -> Iterator[Metric]:
        """The families, as prometheus-client wants them."""
        counts = self.counters
        refusals, responses = _by_status(counts.refusals), _by_status(counts.responses)
        yield _counter("requests_refused", "Requests answered by the picker itself.", refusals, "status")
        yield _counter("responses", "Responses of engines; 0: not told by the gateway.", responses, "status")
        yield _counter("picks", "Requests sent to a pod.", counts.picks, "pod", "endpoint")
        yield self._decision()
        yield from self._tokens()
        about = "Hints about prompts' blocks, in bodies and headers, by what became of them."
        yield _counter("hints", about, counts.hints, "hint", "outcome")
        elsewhere, cut_off = {(): counts.served_elsewhere}, {(): counts.connections_cut_off}
        yield _counter(
            "served_elsewhere", "Responses from another pod than the one that was picked.", elsewhere
        )
        about = "Connections ended by the picker: most of their calls were reset before they were answered."
        yield _counter("connections_cut_off", about, cut_off)
        yield from self._index()
        yield _gauge("pods", "Pods that may be picked.", {(): self.pods})
        yield _gauge("pods_stale", "Of those, without a recent reading of their metrics.", {(): self.stale})
        about = "Of those, whose KV events say what they hold; the others are guessed."
        yield _gauge("pods_precise", about, {(): self.precise})
        failures = {(reason,): count for reason, count in self.failures.items()}
        yield _gauge("scrapes_failing", "Pods whose last scrape brought nothing.", failures, "reason")
        about = "Pods that are not asked for tokens for now: they failed, or took too long."
        yield _gauge("tokenize_pods_left_alone", about, {(): self.skipped_pods})
        about = "Prompts whose pod is kept because their requests said that they come again."
        yield _gauge("kept_prompts", about, {(): self.kept_prompts})
        yield _gauge("open_streams", "ext_proc streams that are open.", {(): self.calls})

    def _decision(self) -> Metric:
        family = HistogramMetricFamily(
            _PREFIX + "decision_seconds", "From the end of a request's body to its endpoint."
        )
        bounds = [*(f"{bound:g}" for bound in DECISION_BUCKETS_S), "+Inf"]
        buckets = list(zip(bounds, accumulate(self.counters.decisions), strict=True))
        family.add_metric([], buckets, self.counters.decision_s)
        return family

    def _tokens(self) -> Iterator[Metric]:
        counts, confirmed = self.counters, self.counters.confirmed
        prompts = {(): counts.prompt_tokens}
        yield _counter("prompt_tokens", "Tokens of picked requests, as the picker counts them.", prompts)
        predicted = {(tier.label,): tokens for tier, tokens in counts.matched_tokens.items()}
        about = "Tokens that a tier of the picked pod was believed to hold; tiers overlap."
        yield _counter("predicted_hit_tokens", about, predicted, "tier")
        queries = {("device",): confirmed.queries, ("external",): confirmed.external_queries}
        about = "Tokens that the engines asked their device cache for, and then the tiers beyond it."
        yield _counter("confirmed_query_tokens", about, queries, "cache")
        hits = {("device",): confirmed.hits, ("external",): confirmed.external_hits}
        yield _counter("confirmed_hit_tokens", "Tokens that they found there.", hits, "cache")

    def _index(self) -> Iterator[Metric]:
        labels = ("pod", "tier")
        used = {(pod, tier.label): blocks for (pod, tier), (blocks, _) in self.blocks.items()}
        capacity = {(pod, tier.label): most for (pod, tier), (_, most) in self.blocks.items()}
        yield _gauge("index_blocks", "Blocks that the index believes a tier to hold.", used, *labels)
        yield _gauge("tier_capacity_blocks", "Blocks that a tier has room for.", capacity, *labels)
        yield _gauge("index_bytes", "Memory of the prefix index.", {(): self.index_bytes})


def metrics_snapshot(  # noqa: PLR0913, PLR0917 - who counts what
    counters: PickerCounters,
    table: PodTable,
    stale: int,
    failures: Mapping[str, int],
    calls: int,
    skipped_pods: int = 0,
) -> MetricsSnapshot:
    """The numbers now."""
    index = table.index
    counters.forget_pods(table.is_there)
    numbers = [(pod.name, number) for pod in table if (number := table.number(pod.address)) is not None]
    return MetricsSnapshot(
        counters=counters.copy(),
        blocks={
            (name, tier): (index.used_blocks(number, tier), capacity)
            for name, number in numbers
            for tier in OF_A_POD
            if (capacity := index.capacity(number, tier))
        },
        precise=sum(index.is_precise(number) for _, number in numbers),
        stale=stale,
        failures=dict(failures),
        pods=len(table),
        index_bytes=index.nbytes,
        calls=calls,
        skipped_pods=skipped_pods,
        kept_prompts=len(table.kept),
    )


def _counter(name: str, about: str, samples: _Samples, *labels: str) -> Metric:
    return _with(CounterMetricFamily(_PREFIX + name, about, labels=labels), samples)


def _gauge(name: str, about: str, samples: _Samples, *labels: str) -> Metric:
    return _with(GaugeMetricFamily(_PREFIX + name, about, labels=labels), samples)


def _with(family: CounterMetricFamily | GaugeMetricFamily, samples: _Samples) -> Metric:
    for labels, value in samples.items():
        family.add_metric(labels, value)
    return family


def _by_status(counts: Mapping[int, int]) -> _Samples:
    return {(str(status),): count for status, count in sorted(counts.items())}
