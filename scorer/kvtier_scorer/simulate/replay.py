"""Does what the command line asks: reads the trace, runs, prints and writes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Final

from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kvtier_common.benchmarks import WORKLOADS
from kvtier_common.terminal.console import PlainConsole
from kvtier_common.terminal.say import json_document, say_whole
from kvtier_common.tier import Tier
from kvtier_scorer.config.model import ScorerWeights
from kvtier_scorer.simulate.agents import AGENTS, agents
from kvtier_scorer.simulate.compare import Comparison, compare
from kvtier_scorer.simulate.hint_gain import HintGain, hint_gain, ways
from kvtier_scorer.simulate.option_texts import bytes_of, part_of, tenant_of, weights_of
from kvtier_scorer.simulate.policies import KVTIER, POLICIES
from kvtier_scorer.simulate.policy import DEFAULT_WEIGHTS
from kvtier_scorer.simulate.settings import PRESETS, PoolSettings, StoreSettings
from kvtier_scorer.simulate.tables import lines_of
from kvtier_scorer.simulate.tenants import TenantsWorkload, tenants
from kvtier_scorer.simulate.trace import PoolError, SimulationError, Trace, build_trace, generate
from kvtier_scorer.simulate.trace_files import load_trace

_WIDEST: Final = 1_000  # columns of a table
_HINT_ERROR: Final = "50%"
_HINT_FALSE: Final = "30%"
_RETAINED: Final = "30%"
_MOST_RETAINED: Final = 0.9
"""As spec.tiers.cpu.retained.most: the rest is for what nothing was promised of."""
_AGENTS: Final = "agents"
_TENANTS: Final = "tenants"
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
    sessions: int | None
    requests: int | None
    preset: str
    pods: int
    gpu_tokens: int | None
    sizes: Mapping[Tier, str]
    remote: str | None
    remote_bandwidth: str
    store_bandwidth: str | None
    scrape_interval: float
    hints: bool
    hint_error: str | None
    hint_false: str | None
    retained: str | None
    tenants: tuple[str, ...]
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
    pool, trace = _pool(options), _trace(options)
    _check_tenants(pool, trace)
    _check_hints(options, trace)
    found = _gain(options, pool, trace, weights) if options.hints else _compare(options, pool, trace, weights)
    document = json_document({"simulate": found.to_json()})
    if options.write is not None:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        options.write.write_text(document + "\n", encoding="utf-8")
    if options.output == "json":
        say_whole(document)
        return
    console = PlainConsole()
    wide = console.options.update(max_width=_WIDEST)
    for part in lines_of(found):
        # a terminal may break a table's lines; a figure that is cut is none
        console.width = max(console.width, Measurement.get(console, wide, part).maximum)
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
        retained=_option("--retained", _retained_of, options.retained or _RETAINED),
        tenants=dict(_option("--tenant", tenant_of, text) for text in options.tenants),
    )


def _retained_of(text: str) -> float:
    part = part_of(text)
    if part > _MOST_RETAINED:
        raise SimulationError(
            f"must be at most {_MOST_RETAINED:.0%}, not {text!r}: the rest is for whatever comes"
        )
    return part


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
    of_agents = {name: getattr(options, name) for name in ("sessions", "requests") if getattr(options, name)}
    if options.trace in WORKLOADS:
        _left_out(of_agents, (_AGENTS, _TENANTS))
        return generate(options.trace, replace(WORKLOADS[options.trace], **shape), options.seed, options.rate)
    rate = {} if options.rate is None else {"rate": options.rate}
    names = {field: name for name, field in _SHAPE.items()}
    _left_out({names[field]: value for field, value in shape.items()} | rate, tuple(WORKLOADS))
    if options.trace == _AGENTS:
        return build_trace(_AGENTS, agents(replace(AGENTS, **of_agents), options.seed))
    if options.trace == _TENANTS:
        both = TenantsWorkload()
        both = replace(both, steady=replace(both.steady, **of_agents))
        return build_trace(_TENANTS, tenants(both, options.seed))
    _left_out(of_agents, (_AGENTS, _TENANTS))
    return load_trace(Path(options.trace))


def _left_out(given: Mapping[str, object], of: tuple[str, ...]) -> None:
    """Raise SimulationError where something is given that shapes other traces."""
    for name in given:
        raise SimulationError(
            f"--{name.replace('_', '-')}: shapes a generated trace; leave it out with a file, or use "
            f"--trace {' or '.join(of)}"
        )


def _check_hints(options: SimulateOptions, trace: Trace) -> None:
    """Raise SimulationError where something is given that is of hints, and there are none."""
    if options.hints:
        return
    for name in ("hint_error", "hint_false"):
        if getattr(options, name) is not None:
            raise SimulationError(f"--{name.replace('_', '-')}: is of what --hints shows; give --hints too")
    if options.retained is not None and not any(hints.retain_s for hints in trace.hints):
        raise SimulationError(
            f"--retained: no request of {trace.name} says a hint; give --hints too, or a trace with hints"
        )


def _check_tenants(pool: PoolSettings, trace: Trace) -> None:
    """Raise SimulationError where no request is of a tenant that was given a part."""
    known = sorted({hints.tenant for hints in trace.hints} - {""})
    for name in pool.tenants:
        if name not in known:
            raise SimulationError(
                f"--tenant: no request of {trace.name} is of {name!r}; "
                + (f"tenants there are {', '.join(known)}" if known else "its requests say no tenant (share)")
            )


def _compare(
    options: SimulateOptions, pool: PoolSettings, trace: Trace, weights: ScorerWeights
) -> Comparison:
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


def _gain(options: SimulateOptions, pool: PoolSettings, trace: Trace, weights: ScorerWeights) -> HintGain:
    names = dict.fromkeys(options.policies or (KVTIER,))
    if len(names) > 1:
        raise SimulationError("--policy: with --hints, one policy is run; name one, or none for kvtier's")
    [policy] = names
    error = _option("--hint-error", part_of, options.hint_error or _HINT_ERROR)
    false = _option("--hint-false", part_of, options.hint_false or _HINT_FALSE)
    said = ways(trace, error, false, options.seed)
    with _progress() as progress:
        tasks = {name: progress.add_task(name, total=len(trace), start=False) for name in said}

        def report(name: str) -> None:
            progress.start_task(tasks[name])
            progress.advance(tasks[name])

        return hint_gain(policy, trace, pool, said, weights=weights, seed=options.seed, report=report)


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = PlainConsole(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _option(option: str, read: Any, text: str) -> Any:  # noqa: ANN401 - whatever `read` gives
    try:
        return read(text)
    except SimulationError as error:
        raise SimulationError(f"{option}: {error}") from None
