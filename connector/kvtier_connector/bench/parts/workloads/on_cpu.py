"""Workloads of shared system prompts, with the tier and with the device cache alone.

High cache: the system prompts are more than the device cache holds. Low cache: it holds them, and all that
a tier can do is cost little. Both have the shape of a published benchmark; `Scaling` says how it was made
smaller. As there, a constant number of requests is under way, and a round begins with prompts that no cache
can have.

What is not as there: on a CPU a prompt takes far longer to compute than its KV cache to copy, and longer
beside its answer, than on the published benchmark's GPUs. So for each prompt that the tier saves, it gains
more here than it would there. How many those are does not depend on that: it is in the hit rates.
"""

import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from kvtier_common.benchmarks import Workload
from kvtier_common.formats.json_text import json_file
from kvtier_connector.bench.engines.engine import SWITCH, BenchEngine, bench_engine
from kvtier_connector.bench.engines.given import NOTHING_GIVEN, Given
from kvtier_connector.bench.parts.workloads.figures import (
    compare,
    compare_requests,
    figures,
    guide_percent,
    side,
)
from kvtier_connector.bench.parts.workloads.load import Round, RoundServed, Served
from kvtier_connector.bench.parts.workloads.shape import IN_BLOCKS, IN_GB, Scaling, kv_bytes_per_token
from kvtier_connector.config import MIB, ConnectorConfig, kv_transfer_config

ROUNDS: Final = MappingProxyType({"high_cache": 4, "high_cache_in_gb": 3, "low_cache": 6})
"""Of each workload, on each side: some minutes in all on a quiet machine."""
_BLOCK_TOKENS: Final = 32
"""The smallest block that vLLM's CPU attention likes (platforms/cpu.py); vLLM's own, on CUDA, has 16."""
_DTYPE: Final = "float32"
"""In bfloat16 a prompt rounds differently when it is computed in other pieces, and answers may differ."""
_ELEMENT_BYTES: Final = 4
_EMPTY: Final = {
    "kv_connector": "EmptyConnector",
    "kv_role": "kv_both",
    "kv_connector_module_path": "kvtier_connector.bench.engines.switch",
}
LOAD: Final = "kvtier_connector.bench.parts.workloads.load"
_WARM_UP: Final = Workload(
    groups=1,
    prompts_per_group=2,
    system_tokens=2 * _BLOCK_TOKENS,
    question_tokens=1,
    output_tokens=2,
    concurrency=1,
)


@dataclass(frozen=True, slots=True)
class _Section:
    """One part of the report: a workload and the caches it meets."""

    name: str
    guide_name: str
    scaling: Scaling
    workload: Workload


def bench_workloads(  # noqa: PLR0913 - what a run is made of
    model: Path,
    *,
    log: Path,
    say: Callable[[str], None],
    rounds: Mapping[str, int] = ROUNDS,
    divisor: int = IN_BLOCKS.divisor,
    given: Given = NOTHING_GIVEN,
) -> dict[str, Any]:
    """Measure rounds with the tier and rounds without it, taking turns.

    An engine runs each round with its connector and with it taken out, in alternating order. For the
    low-cache workload a second engine takes turns with it, whose connector does nothing: that shows what
    vLLM takes for any connector. All compute on one core, and each waits until the other is at rest.

    Args:
        model: the model's folder; all its layers have full attention.
        log: files for the engines' output; each adds its suffix.
        say: is told how far it is.
        rounds: of each workload on each side; what has none is left out.
        divisor: of all lengths and caches; a larger one makes a smaller benchmark.
        given: arguments for both engines; a tier among them stands for the scaled one.

    Returns:
        For each workload its shape, each side's figures, their ratios, the guide's, and whether all sides
        answered the same tokens. `high_cache` and `low_cache` have the guide's caches as it gives them in
        blocks, `high_cache_in_gb` as it counts them in GB.

    Raises:
        ConnectorError: an engine died.
    """
    blocks, gb = (replace(each, divisor=divisor) for each in (IN_BLOCKS, IN_GB))
    token_bytes = kv_bytes_per_token(json_file(model / "config.json"), _ELEMENT_BYTES)
    sections = {
        section.name: section
        for section in (
            _Section("high_cache", "high_cache", blocks, blocks.high_cache()),
            _Section("high_cache_in_gb", "high_cache", gb, gb.high_cache()),
            _Section("low_cache", "low_cache", blocks, blocks.low_cache()),
        )
    }
    report = {}
    for name, section in sections.items():
        if not rounds.get(name):
            continue
        with ExitStack() as running:
            transfers = {"kvtier": dict(given.transfer or _tier(section.scaling, token_bytes))}
            if name == "low_cache":
                transfers["empty"] = _EMPTY
            engines = {
                connector: running.enter_context(
                    _engine(
                        model, section.scaling, transfer, given, log.with_suffix(f".{name}.{connector}.log")
                    )
                )
                for connector, transfer in transfers.items()
            }
            report[name] = _measure(section, engines, rounds[name], token_bytes, say)
    return report


def _tier(scaling: Scaling, token_bytes: int) -> dict[str, Any]:
    capacity = math.ceil(scaling.tier_tokens() * token_bytes / MIB) * MIB
    return kv_transfer_config(ConnectorConfig(cpu_capacity_bytes=capacity))


@contextmanager
def _engine(
    model: Path, scaling: Scaling, transfer: dict[str, Any], given: Given, log: Path
) -> Iterator[BenchEngine]:
    longest = scaling.high_cache()
    settings = {
        "model": str(model),
        "dtype": _DTYPE,
        "block_size": _BLOCK_TOKENS,
        "max_model_len": longest.prompt_tokens + longest.output_tokens,
        "max_num_seqs": longest.concurrency,
        "max_num_batched_tokens": scaling.step_limit_tokens(),
        # vLLM keeps one block to itself.
        "num_gpu_blocks_override": math.ceil(scaling.device_tokens() / _BLOCK_TOKENS) + 1,
        "kv_transfer_config": transfer,
        **SWITCH,
    }
    core = str(max(os.sched_getaffinity(0)))
    with bench_engine(settings, log=log, given=given, cores=core, module=LOAD) as engine:
        served(engine, Round(_WARM_UP, seed="warm-up", connected=True))
        engine.rest()
        yield engine


def _measure(
    section: _Section,
    engines: Mapping[str, BenchEngine],
    rounds: int,
    token_bytes: int,
    say: Callable[[str], None],
) -> dict[str, Any]:
    found: dict[tuple[str, bool], list[RoundServed]] = {
        (engine, connected): [] for engine in engines for connected in (True, False)
    }
    differing = 0
    for number in range(rounds):
        answers: list[list[list[int]]] = []
        for name, engine in engines.items():
            for connected in (True, False) if number % 2 else (False, True):
                asked = Round(section.workload, seed=f"{section.name} {number}", connected=connected)
                answer = served(engine, asked)
                engine.rest()
                found[name, connected].append(answer)
                answers.append([each.tokens for each in answer.requests])
        differing += requests_differing(answers)
        on, off = (found["kvtier", connected][-1].seconds for connected in (True, False))
        say(f"{section.name}, round {number + 1} of {rounds}: {off:.1f} -> {on:.1f} s")
    report: dict[str, Any] = {
        "shape": asdict(section.workload) | section.scaling.ratios(section.workload),
        "device_tokens": section.scaling.device_tokens(),
        "tier_tokens": section.scaling.tier_tokens(),
        "rounds": rounds,
        "requests_per_round": section.workload.requests,
        "outputs_equal": not differing,
        "requests_differing": differing,
        "guide_percent": guide_percent(section.guide_name),
    }
    for name in engines:
        on_off = [found[name, connected] for connected in (True, False)]
        with_it, alone = ([figures(section.workload, one, token_bytes) for one in each] for each in on_off)
        report[name] = {
            "with": side(with_it),
            "device_cache_alone": side(alone),
            "ratio": compare(with_it, alone) | compare_requests(*on_off),
        }
    return report


def served(engine: BenchEngine, asked: Round) -> RoundServed:
    """Have an engine's process run one round.

    Raises:
        ConnectorError: it died.
    """
    answer = engine.exchange(asdict(asked))
    requests = [Served(**each) for each in answer.pop("requests")]
    return RoundServed(requests=requests, **answer)


def requests_differing(sides: list[list[list[int]]]) -> int:
    """Return how many requests were not answered with the same tokens by all sides."""
    return sum(any(one != other for other in others) for one, *others in zip(*sides, strict=True))
