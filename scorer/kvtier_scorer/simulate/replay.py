"""Does what the command line asks: reads the trace, runs, prints and writes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kvtier_common.terminal.console import PlainConsole
from kvtier_common.terminal.say import json_document, say_whole
from kvtier_common.tier import BEYOND_DEVICE, Tier
from kvtier_scorer.config.model import ScorerWeights
from kvtier_scorer.simulate.engine.policy import DEFAULT_WEIGHTS
from kvtier_scorer.simulate.engine.settings import PRESETS, PoolSettings
from kvtier_scorer.simulate.errors import PoolError, SimulationError
from kvtier_scorer.simulate.policies import POLICIES
from kvtier_scorer.simulate.quantities import bytes_of, weights_of
from kvtier_scorer.simulate.report.plot import write_plot
from kvtier_scorer.simulate.report.table import comparison_lines, sweep_lines, weights_text
from kvtier_scorer.simulate.runs.compare import Comparison, compare
from kvtier_scorer.simulate.runs.sweep import Objective, SweepResult, candidate_weights, runs, sweep
from kvtier_scorer.simulate.traces import load_trace
from kvtier_scorer.simulate.traces.generated import WORKLOADS, generate
from kvtier_scorer.simulate.traces.trace import Trace, part_of

_SHAPE: Final = {
    "num_groups": "groups",
    "prompts_per_group": "prompts_per_group",
    "system_prompt_len": "system_tokens",
    "question_len": "question_tokens",
    "output_len": "output_tokens",
    "concurrency": "concurrency",
    "rate": "rate_per_s",
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
    scrape_interval: float
    policies: tuple[str, ...]
    weights: str | None
    same_weights: bool
    seed: int
    sweep: bool
    objective: str
    candidates: int
    replicates: int
    output: str
    write: Path | None
    plot: Path | None


def replay(asked: SimulateOptions) -> None:
    """Run what was asked, print and write it.

    Raises:
        SimulationError: It cannot be simulated.
        OSError: A file cannot be written.
    """
    weights = DEFAULT_WEIGHTS if asked.weights is None else _named("--weights", weights_of, asked.weights)
    for name in asked.policies:
        if name not in POLICIES:
            raise SimulationError(f"--policy: {name!r} is not known; known are {', '.join(POLICIES)}")
    for option, given in (
        ("--plot", asked.plot),
        ("--policy", asked.policies),
        ("--weights", asked.weights),
        ("--same-weights", asked.same_weights),
    ):
        if asked.sweep and given:
            raise SimulationError(f"{option}: is for a comparison of policies; leave it or --sweep out")
    pool = pool_of(asked)
    if asked.sweep:
        result = _sweep(asked, pool)
        _show(
            asked,
            {"sweep": {**result.to_json(), "best_text": weights_text(result.best)}},
            sweep_lines(result),
        )
        return
    comparison = _compare(asked, pool, weights)
    if asked.plot is not None:
        write_plot(comparison, asked.plot)
    _show(asked, {"simulate": comparison.to_json()}, comparison_lines(comparison))


def pool_of(asked: SimulateOptions) -> PoolSettings:
    """The pods that were asked for.

    Raises:
        PoolError: There is no such preset, or a size makes no sense.
        SimulationError: A size is none.
    """
    if asked.preset not in PRESETS:
        raise PoolError(f"--preset: {asked.preset!r} is not known; known are {', '.join(PRESETS)}")
    pod = PRESETS[asked.preset]
    blocks = {
        tier: _named(f"--{tier.label}", bytes_of, size) // pod.block_bytes
        for tier, size in asked.sizes.items()
    }
    if asked.gpu_tokens is not None:
        blocks[Tier.GPU] = asked.gpu_tokens // pod.block_tokens
    pod = replace(pod, blocks={**pod.blocks, **blocks})
    return PoolSettings(pods=asked.pods, pod=pod, scrape_interval_s=asked.scrape_interval)


def trace_of(asked: SimulateOptions, seed: int) -> Trace:
    """The trace that was asked for.

    Raises:
        TraceError: It cannot be read.
        SimulationError: An option is for generated traces only.
    """
    shape = {
        field: getattr(asked, name) for name, field in _SHAPE.items() if getattr(asked, name) is not None
    }
    if asked.trace in WORKLOADS:
        return generate(asked.trace, replace(WORKLOADS[asked.trace], **shape), seed)
    if shape:
        option = next(name for name, field in _SHAPE.items() if field in shape).replace("_", "-")
        raise SimulationError(
            f"--{option}: shapes a generated trace; leave it out with a file, or use "
            f"--trace {' or '.join(WORKLOADS)}"
        )
    return load_trace(Path(asked.trace))


def _compare(asked: SimulateOptions, pool: PoolSettings, weights: ScorerWeights) -> Comparison:
    trace = trace_of(asked, asked.seed)
    names = asked.policies or tuple(POLICIES)
    with _progress() as progress:
        tasks = {
            name: progress.add_task(name, total=len(trace), start=False) for name in dict.fromkeys(names)
        }

        def report(name: str, done: int) -> None:
            progress.start_task(tasks[name])
            progress.advance(tasks[name], done)

        return compare(
            tasks, trace, pool, weights=weights, for_all=asked.same_weights, seed=asked.seed, report=report
        )


def _sweep(asked: SimulateOptions, pool: PoolSettings) -> SweepResult:
    parts = 2 * asked.replicates

    @lru_cache(maxsize=parts)
    def replicate(number: int) -> Trace:
        if asked.trace in WORKLOADS:
            return trace_of(asked, asked.seed + number)
        return part_of(whole(), number, parts)

    @lru_cache(maxsize=1)
    def whole() -> Trace:
        return trace_of(asked, asked.seed)

    tiers = {tier for tier in BEYOND_DEVICE if pool.pod.blocks[tier]}
    candidates = candidate_weights(asked.candidates, tiers, seed=asked.seed)
    with _progress() as progress:
        task = progress.add_task("runs", total=runs(len(candidates), asked.replicates))
        return sweep(
            replicate,
            pool,
            Objective(asked.objective),
            candidates,
            replicates=asked.replicates,
            seed=asked.seed,
            report=lambda: progress.advance(task),
        )


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = PlainConsole(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _show(asked: SimulateOptions, document: dict[str, Any], readable: list[Any]) -> None:
    text = json_document(document)
    if asked.write is not None:
        asked.write.parent.mkdir(parents=True, exist_ok=True)
        asked.write.write_text(text + "\n", encoding="utf-8")
    if asked.output == "json":
        say_whole(text)
        return
    console = PlainConsole()
    for each in readable:
        console.print(each, soft_wrap=isinstance(each, str))


def _named(option: str, read: Any, text: str) -> Any:  # noqa: ANN401 - whatever `read` gives
    try:
        return read(text)
    except SimulationError as error:
        raise SimulationError(f"{option}: {error}") from None
