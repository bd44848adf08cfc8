"""Small pods and traces, whose figures can be worked out by hand."""

from collections.abc import Iterable, Sequence
from random import Random

from hypothesis import strategies as st

from kvtier_common.tier import Tier
from kvtier_scorer.config.model import ScorerWeights
from kvtier_scorer.simulate.policies import POLICIES
from kvtier_scorer.simulate.policy import DEFAULT_WEIGHTS, Loads, Situation
from kvtier_scorer.simulate.settings import PodSettings, PoolSettings
from kvtier_scorer.simulate.trace import Segment, Trace, TraceRequest, build_trace
from kvtier_scorer.simulate.upstream_pickers import ApproximatePicker

BLOCK = 16


def pod(gpu: int = 100, cpu: int = 200, disk: int = 0, **more: float) -> PodSettings:
    """Blocks of 16 tokens of a byte each; a step takes 10 ms, a prompt's token 1 ms, attention nothing."""
    given = {
        "block_tokens": BLOCK,
        "kv_bytes_per_token": 1,
        "blocks": {Tier.GPU: gpu, Tier.CPU: cpu, Tier.DISK: disk},
        "max_running": 64,
        "step_tokens": 1_000_000,
        "prefill_tokens_per_s": 1000.0,
        "attention_pairs_per_s": 1e30,
        "step_s": 0.01,
        "kv_read_bytes_per_s": 1e30,
        "load_bytes_per_s": {Tier.CPU: 10_000.0, Tier.DISK: 1_000.0},
    }
    return PodSettings(**{**given, **more})  # type: ignore[arg-type]


def pool(pods: int = 2, **more: float) -> PoolSettings:
    return PoolSettings(pods=pods, pod=pod(**more), scrape_interval_s=0.1)  # type: ignore[arg-type]


def asked(
    *segments: tuple[str, int], output: int = 1, at_s: float | None = None, model: str = "m"
) -> TraceRequest:
    return TraceRequest(model, tuple(Segment(key, tokens) for key, tokens in segments), output, at_s)


def trace(*requests: TraceRequest, concurrency: int | None = None) -> Trace:
    return build_trace("test", requests, concurrency)


def situation(
    given: Trace, where: PoolSettings, weights: ScorerWeights = DEFAULT_WEIGHTS, seed: int = 0
) -> Situation:
    return Situation(given, where, weights, Random(seed))  # noqa: S311 - not for secrets


@st.composite
def prompts(draw: st.DrawFn, most: int = 12) -> list[list[tuple[str, int]]]:
    """Prompts of segments that often begin alike; a segment has one length wherever it stands."""
    lengths = draw(st.lists(st.integers(1, 70), min_size=4, max_size=4))
    segment = st.integers(0, len(lengths) - 1).map(lambda number: (f"s{number}", lengths[number]))
    return draw(st.lists(st.lists(segment, min_size=1, max_size=4), min_size=1, max_size=most))


def timed(found: Iterable[Sequence[tuple[str, int]]], gap_s: float = 0.05, output: int = 5) -> Trace:
    """Those prompts, one after another."""
    return trace(*(asked(*each, output=output, at_s=number * gap_s) for number, each in enumerate(found)))


def tokens_of(prompt: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """A prompt as tokens that are told apart by segment and place."""
    return [(key, place) for key, length in prompt for place in range(length)]


def loads_of(depths: list[int], running: list[int], used: list[float]) -> Loads:
    loads = Loads(len(depths), 0.1)
    for number, (depth, runs, part) in enumerate(zip(depths, running, used, strict=True)):
        loads.change(number, 0.0, queue_depth=depth, running=runs, utilization=part)
    loads.read(0.1)
    return loads


def picker(name: str, found: Trace, where: PoolSettings, seed: int = 0) -> ApproximatePicker:
    built = POLICIES[name].build(situation(found, where, seed=seed))
    assert isinstance(built, ApproximatePicker)
    return built
