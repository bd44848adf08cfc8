"""Does what the command line asks: reads the trace, runs, prints and writes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from kvtier_common.benchmarks import WORKLOADS
from kvtier_common.terminal.console import PlainConsole
from kvtier_common.terminal.say import json_document, say_whole
from kvtier_common.tier import OF_A_POD, Tier
from kvtier_scorer.config.model import ScorerWeights
from kvtier_scorer.simulate.compare import Comparison, compare
from kvtier_scorer.simulate.policies import POLICIES
from kvtier_scorer.simulate.policy import DEFAULT_WEIGHTS, WEIGHED, weights_in_order
from kvtier_scorer.simulate.settings import PRESETS, PoolSettings, StoreSettings
from kvtier_scorer.simulate.trace import PoolError, SimulationError, Trace, generate
from kvtier_scorer.simulate.trace_files import load_trace

_UNITS: Final = {
    "": 1,
    "Ki": 1 << 10,
    "Mi": 1 << 20,
    "Gi": 1 << 30,
    "Ti": 1 << 40,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
}
_QUANTITY: Final = re.compile(r"(\d{1,30}(?:\.\d{1,30})?)(|Ki|Mi|Gi|Ti|k|M|G|T)", re.ASCII)
_WHOLE: Final = re.compile(r"\d{1,9}", re.ASCII)
_LEAST_WEIGHTS: Final = 4  # those of tiers behind the CPU's may be left out
_MOST_BYTES: Final = 1 << 60
_MOST_WEIGHT: Final = 1_000_000


_MORE = ("TTFT s\nmean", "TTFT s\nP90", "E2E s\nmean", "tokens\n/s", "load\nvaries")


_SHAPE: Final = {
    "num_groups": "groups",
    "prompts_per_group": "prompts_per_group",
    "system_prompt_len": "system_tokens",
    "question_len": "question_tokens",
    "output_len": "output_tokens",
    "concurrency": "concurrency",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateOptions:
    """The options; None where one was left out.

    Attributes are named as the options are, but for `sizes`: of each tier beyond the device, where given.
    """

    trace: str
    num_groups: int | None
    prompts_per_group: int | None
    system_prompt_len: int | None
    question_len: int | None
    output_len: int | None
    concurrency: int | None
    rate: float | None
    preset: str
    pods: int
    gpu_tokens: int | None
    sizes: Mapping[Tier, str]
    remote: str | None
    remote_bandwidth: str
    store_bandwidth: str | None
    scrape_interval: float
    policies: tuple[str, ...]
    weights: str | None
    same_weights: bool
    seed: int
    output: str
    write: Path | None


def replay(options: SimulateOptions) -> None:
    """Run what was asked, print and write it; raises SimulationError or OSError."""
    text = options.weights
    weights = DEFAULT_WEIGHTS if text is None else _option("--weights", weights_of, text)
    for name in options.policies:
        if name not in POLICIES:
            raise SimulationError(f"--policy: {name!r} is not known; known are {', '.join(POLICIES)}")
    comparison = _compare(options, _pool(options), weights)
    document = json_document({"simulate": comparison.to_json()})
    if options.write is not None:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        options.write.write_text(document + "\n", encoding="utf-8")
    if options.output == "json":
        say_whole(document)
        return
    console = PlainConsole()
    for part in _comparison_lines(comparison):
        console.print(part, soft_wrap=isinstance(part, str))


def _pool(options: SimulateOptions) -> PoolSettings:
    if options.preset not in PRESETS:
        raise PoolError(f"--preset: {options.preset!r} is not known; known are {', '.join(PRESETS)}")
    pod = PRESETS[options.preset]
    blocks = {
        tier: _option(f"--{tier.label}", bytes_of, size) // pod.block_bytes
        for tier, size in options.sizes.items()
    }
    if options.gpu_tokens is not None:
        blocks[Tier.GPU] = options.gpu_tokens // pod.block_tokens
    pod = replace(pod, blocks={**pod.blocks, **blocks})
    return PoolSettings(
        pods=options.pods,
        pod=pod,
        store=_store(options, pod.block_bytes),
        scrape_interval_s=options.scrape_interval,
    )


def _store(options: SimulateOptions, block_bytes: int) -> StoreSettings | None:
    """None where no size is given, or one of nothing."""
    blocks = _option("--remote", bytes_of, options.remote or "0") // block_bytes
    if not blocks:
        if options.store_bandwidth is not None:
            raise SimulationError("--store-bandwidth: is of a store; give --remote its size")
        return None
    total = options.store_bandwidth
    return StoreSettings(
        blocks=blocks,
        pod_bytes_per_s=_rate("--remote-bandwidth", options.remote_bandwidth),
        bytes_per_s=inf if total is None else _rate("--store-bandwidth", total),
    )


def _rate(option: str, text: str) -> int:
    rate: int = _option(option, bytes_of, text)
    if not rate:
        raise SimulationError(f"{option}: must be more than 0, not {text!r}")
    return rate


def _trace(options: SimulateOptions) -> Trace:
    shape = {
        field: getattr(options, name) for name, field in _SHAPE.items() if getattr(options, name) is not None
    }
    if options.trace in WORKLOADS:
        return generate(options.trace, replace(WORKLOADS[options.trace], **shape), options.seed, options.rate)
    if shape or options.rate is not None:
        option = next((name for name, field in _SHAPE.items() if field in shape), "rate").replace("_", "-")
        raise SimulationError(
            f"--{option}: shapes a generated trace; leave it out with a file, or use "
            f"--trace {' or '.join(WORKLOADS)}"
        )
    return load_trace(Path(options.trace))


def _compare(options: SimulateOptions, pool: PoolSettings, weights: ScorerWeights) -> Comparison:
    trace = _trace(options)
    names = options.policies or tuple(POLICIES)
    with _progress() as progress:
        tasks = {
            name: progress.add_task(name, total=len(trace), start=False) for name in dict.fromkeys(names)
        }

        def report(name: str) -> None:
            progress.start_task(tasks[name])
            progress.advance(tasks[name])

        same, seed = options.same_weights, options.seed
        return compare(tasks, trace, pool, weights=weights, for_all=same, seed=seed, report=report)


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = PlainConsole(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _comparison_lines(comparison: Comparison) -> list[Table | str]:
    """The trace, a table with one row a policy and what the policies are."""
    trace = comparison.trace
    sent = (
        f"{trace.concurrency} under way" if trace.time_s is None else f"over {float(trace.time_s[-1]):,.0f} s"
    )
    tokens = int(trace.prompt_tokens.sum())
    title = f"{trace.name}: {len(trace):,} requests, {tokens:,} prompt tokens, {sent}"
    about = [f"{name}: {POLICIES[name].about}" for name in comparison.figures]
    return [title, _table(comparison), *about]


def _table(comparison: Comparison) -> Table:
    """One row a policy; a tier that gave nothing to any policy has no column."""
    every = comparison.figures.values()
    tiers = [tier for tier in Tier if any(figures.tier_hit_rate[tier] for figures in every)]
    rows = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    rows.add_column("policy", no_wrap=True)
    for column in ("hit\nrate", *(f"from\n{tier.name}" for tier in tiers), *_MORE):
        rows.add_column(column, justify="right", no_wrap=True)
    best = max((figures.hit_rate for figures in every), default=0.0)
    for name, figures in comparison.figures.items():
        rows.add_row(
            name,
            f"{figures.hit_rate:.1%}",
            *(f"{figures.tier_hit_rate[tier]:.1%}" for tier in tiers),
            f"{figures.ttft_mean_s:.2f}",
            f"{figures.ttft_p90_s:.2f}",
            f"{figures.e2e_mean_s:.1f}",
            f"{figures.tokens_per_s:,.0f}",
            f"{figures.load_variation:.1%}",
            style="bold" if figures.hit_rate == best else "",
        )
    return rows


def bytes_of(text: str) -> int:
    """Bytes of a Kubernetes quantity such as `100Gi`; 0 for none."""
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise SimulationError(f"must be a size of 0 or more such as 100Gi, not {text!r}")
    size_bytes = float(match[1]) * _UNITS[match[2]]
    if size_bytes > _MOST_BYTES:
        raise SimulationError(f"must be at most {_MOST_BYTES >> 40} Ti, not {text!r}")
    return int(size_bytes)


def weights_of(text: str) -> ScorerWeights:
    """Weights such as `queue:utilization:gpu:cpu` or `queue:utilization:gpu:cpu:disk`."""
    parts = text.split(":")
    if not _LEAST_WEIGHTS <= len(parts) <= len(WEIGHED) or not all(_WHOLE.fullmatch(part) for part in parts):
        more = "".join(f"[:{tier.label}]" for tier in OF_A_POD[Tier.CPU + 1 :])
        raise SimulationError(
            f"must be whole numbers queue:utilization:gpu:cpu{more} such as 2:2:1:1, not {text!r}"
        )
    numbers = [int(part) for part in parts]
    if max(numbers) > _MOST_WEIGHT:
        raise SimulationError(f"must be at most {_MOST_WEIGHT:,} each, not {text!r}")
    if not any(numbers):
        raise SimulationError("are all 0; give one a weight")
    return weights_in_order(*numbers)


def _option(option: str, read: Any, text: str) -> Any:  # noqa: ANN401 - whatever `read` gives
    try:
        return read(text)
    except SimulationError as error:
        raise SimulationError(f"{option}: {error}") from None
