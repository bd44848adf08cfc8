"""What a round of a workload comes to, how two sides compare, and what others measured."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from statistics import fmean, median
from typing import Any, Final

from kvtier_common.benchmarks import Workload, p90
from kvtier_connector.bench.confidence import confidence_95
from kvtier_connector.bench.parts.workloads.load import RoundServed


@dataclass(frozen=True, slots=True)
class Figures:
    """One round of one side.

    Args:
        mean_ttft_s: from when a request is sent until its first token, waiting included.
        p90_ttft_s: as above, exceeded by at most a tenth of the requests.
        mean_e2e_s: until its last token.
        p90_e2e_s: as above, exceeded by at most a tenth.
        output_tokens_per_s: generated tokens over the round's time.
        total_tokens_per_s: those and the prompts' tokens, which the guide calls overall throughput.
        hit_rate: share of the prompts' tokens that were found in some cache.
        tier_hit_rate: share of the prompts' tokens that were loaded from the tier.
    """

    mean_ttft_s: float
    p90_ttft_s: float
    mean_e2e_s: float
    p90_e2e_s: float
    output_tokens_per_s: float
    total_tokens_per_s: float
    hit_rate: float
    tier_hit_rate: float


_COMPARED: Final = tuple(field.name for field in fields(Figures))[:-2]
"""What has a ratio: all but the hit rates."""

_LATENCIES_AND_THROUGHPUT: Final = (
    "mean_ttft_s",
    "p90_ttft_s",
    "mean_e2e_s",
    "p90_e2e_s",
    "total_tokens_per_s",
)
_GUIDE: Final = {
    "high_cache": {
        "baseline": (9.0, 20.9, 37.8, 49.7, 38534.8),
        "vllm_offloading": (6.7, 20.2, 30.9, 44.2, 46751.0),
        "lmcache": (6.5, 18.8, 30.8, 43.0, 46910.6),
    },
    "low_cache": {
        "baseline": (0.12, 0.09, 18.4, 19.6, 23389.6),
        "vllm_offloading": (0.13, 0.11, 18.6, 20.6, 23032.6),
        "lmcache": (0.15, 0.10, 18.9, 19.6, 22772.5),
    },
}
"""llm-d 0.4.0, guides/tiered-prefix-cache/cpu/README.md: Qwen3-32B on 16 H100, one run of each."""


def guide_percent(name: str) -> dict[str, dict[str, float]]:
    """Return by how many percent the guide's connectors changed its figures of a workload."""
    table = _GUIDE[name]
    return {
        side: {
            figure: (with_it / without - 1) * 100
            for figure, with_it, without in zip(
                _LATENCIES_AND_THROUGHPUT, table[side], table["baseline"], strict=True
            )
        }
        for side in ("vllm_offloading", "lmcache")
    }


def figures(workload: Workload, served: RoundServed, token_bytes: int) -> Figures:
    """Return the figures of one round.

    Args:
        workload: what was asked.
        served: what came of it.
        token_bytes: bytes of one token's KV cache.
    """
    first, last = ([getattr(each, name) for each in served.requests] for name in ("ttft_s", "e2e_s"))
    prompt_tokens = workload.prompt_tokens * len(served.requests)
    output_tokens = sum(len(each.tokens) for each in served.requests)
    return Figures(
        mean_ttft_s=fmean(first),
        p90_ttft_s=p90(first),
        mean_e2e_s=fmean(last),
        p90_e2e_s=p90(last),
        output_tokens_per_s=output_tokens / served.seconds,
        total_tokens_per_s=(prompt_tokens + output_tokens) / served.seconds,
        hit_rate=sum(each.cached for each in served.requests) / prompt_tokens,
        tier_hit_rate=served.loaded_bytes / token_bytes / prompt_tokens,
    )


def side(rounds: Sequence[Figures]) -> dict[str, dict[str, Any]]:
    """Return each figure's median over rounds, and its smallest and largest value."""
    columns = {field.name: [getattr(figures, field.name) for figures in rounds] for field in fields(Figures)}
    return {
        name: {"median": median(values), "spread": (min(values), max(values))}
        for name, values in columns.items()
    }


def compare(with_it: Sequence[Figures], without: Sequence[Figures]) -> dict[str, dict[str, Any]]:
    """Return each figure's ratio of a round with a connector to the same without: median, 95 % interval."""
    found = {}
    for name in _COMPARED:
        pairs = zip(with_it, without, strict=True)
        found[name] = _over_rounds([asdict(on)[name] / asdict(off)[name] for on, off in pairs])
    return found


def compare_requests(
    with_it: Sequence[RoundServed], without: Sequence[RoundServed]
) -> dict[str, dict[str, Any]]:
    """Return the same for each request's times over its own without, of which a round counts the median.

    So a burst of some other process takes a few requests along, and not the round.
    """
    found = {}
    for name in ("ttft_s", "e2e_s"):
        medians = []
        for on, off in zip(with_it, without, strict=True):
            pairs = zip(on.requests, off.requests, strict=True)
            medians.append(median(getattr(one, name) / getattr(other, name) for one, other in pairs))
        found[f"request_{name}"] = _over_rounds(medians)
    return found


def _over_rounds(ratios: Sequence[float]) -> dict[str, Any]:
    middle = median(ratios)
    return {"ratio": middle, "ratio_ci95": confidence_95(ratios), "percent": (middle - 1) * 100}
