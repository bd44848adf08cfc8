"""A store that engines share: prompts that another engine has computed, and a workload over two engines.

All engines are alive at the same time and take turns prompt by prompt, so that what else the machine does
disturbs all alike. A prompt is computed by one engine and asked of others, which have it from the store or
compute it as well; beside them plain sockets read as many bytes from the same server.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

from kvtier_common.benchmarks import Workload
from kvtier_connector.bench import load
from kvtier_connector.bench.comparison import PINNING_TIMEOUT_S, Comparison
from kvtier_connector.bench.engine import Answer, Ask, BenchEngine, bench_engine
from kvtier_connector.bench.load import IN_BLOCKS, ON_A_GPU, Round, RoundServed, ask_round
from kvtier_connector.bench.measure import Run
from kvtier_connector.bench.store.figures import (
    SLOW,
    WITH_STORE,
    WITHOUT,
    Times,
    rows,
    together,
    ttft_figures,
    workload_figures,
)
from kvtier_connector.bench.store.relay import slow_way
from kvtier_connector.bench.store.server import BenchStore, bench_store
from kvtier_connector.bench.store.wire import Wire, wire_to
from kvtier_connector.bench.workloads import over_caches
from kvtier_connector.config import GIB

__all__ = ["measure", "rows"]

_SLOWNESS: Final = 4.0  # a store that is not worth it takes so many times as long as computing
_ROUNDS: Final = 2  # of the workload, of each side
_HITS_PER_PROMPT: Final = 3
_STORE_BYTES: Final = 4 * GIB
_CONNECTIONS: Final = 4  # of an engine to its store, the connector's default
_QUIET_S: Final = 1.0  # without another value, after which all have been written
_WRITING_S: Final = 60.0
_ANSWER_TOKENS: Final = 64
_SHORT: Final = Ask(seed=-1, prompt_tokens=256)
_FLUSH: Final = Ask(seed=-2, prompt_tokens=16, output_tokens=8)
"""Its steps begin the last stores, which come a step late."""
_LONG_SEED: Final = -3


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Two engines of one kind: what the first computes the second is asked."""

    title: str
    first: Mapping[str, Any] | None  # the first's `kv_transfer_config`; None for the first of `WITH_STORE`
    second: Mapping[str, Any]


Others = Callable[[Comparison, BenchStore, int, Path], AbstractContextManager[Mapping[str, Side]]]
"""Makes further sides, by name: of what is compared, the store, the tokens of a tier in memory, and a file
beside which their logs are."""


@contextmanager
def nothing_else(*_: object) -> Iterator[Mapping[str, Side]]:
    """Make no further sides."""
    yield {}


@dataclass(frozen=True, slots=True)
class Pair:
    """A side's engines; they serve the workload, too, where the first is not another side's."""

    first: BenchEngine
    second: BenchEngine
    is_whole: bool


def measure(run: Run) -> dict[str, Any]:
    """Measure kvtier beside kvtier without a store, and with one that is not worth it."""
    return compare_remote(run, nothing_else)


def compare_remote(run: Run, others: Others) -> dict[str, Any]:
    """Measure these sides and others.

    Raises ConnectorError: no store can run here, or an engine dies.
    """
    comparison = Comparison.of(run)
    scaling = ON_A_GPU if run.gpu else IN_BLOCKS
    # all engines serve prompts and workload, whose device cache is bounded
    most_tokens = scaling.device_tokens() - _ANSWER_TOKENS
    prompt_tokens = min(
        run.prompt_tokens, most_tokens // chunk_tokens(comparison) * chunk_tokens(comparison) + 1
    )
    settings = comparison.settings(
        device_tokens=scaling.device_tokens(), longest_tokens=scaling.device_tokens()
    ) | {
        "max_num_seqs": scaling.high_cache().concurrency,
        "max_num_batched_tokens": scaling.step_limit_tokens(),
        "disable_log_stats": False,
    }
    with ExitStack() as stack:
        store = stack.enter_context(bench_store(run.log("remote.store"), _STORE_BYTES))

        def start(name: str, transfer: Mapping[str, Any]) -> BenchEngine:
            engine = stack.enter_context(
                bench_engine(
                    settings | {"kv_transfer_config": dict(transfer)},
                    serve_options=comparison.serve_options,
                    log=run.log(f"remote.{name}"),
                    module=load.__name__,
                )
            )
            run.say(f"remote: {name} is ready after {engine.ready_s:.0f} s")
            return engine

        tokens = scaling.tier_tokens()
        alone, sharing = tier(comparison, tokens), tier(comparison, tokens, store.port)
        first = start(f"{WITHOUT}.1", alone)
        slow_bytes_per_s = (
            comparison.token_bytes() * prompt_tokens / _warm_up(first, prompt_tokens) / _SLOWNESS
        )
        slow_port = stack.enter_context(slow_way(store.port, slow_bytes_per_s, run.log("remote.relay")))
        sides = {
            WITH_STORE: Side(title="kvtier, a store", first=sharing, second=sharing),
            SLOW: Side(
                title=f"kvtier, a store at {slow_bytes_per_s / 1e6:.2f} MB/s",
                first=None,
                second=tier(comparison, tokens, slow_port),
            ),
            **stack.enter_context(others(comparison, store, tokens, run.log("remote"))),
        }
        transfers = {f"{WITHOUT}.2": alone, **_transfers(sides)}
        with ThreadPoolExecutor(len(transfers)) as pool:  # most of a start is one core's work
            engines = dict(zip(transfers, pool.map(start, transfers, transfers.values()), strict=True))
        for engine in engines.values():
            _warm_up(engine, prompt_tokens)
        pairs = {WITHOUT: Pair(first, engines[f"{WITHOUT}.2"], is_whole=True)}
        for name, side in sides.items():
            one = engines[f"{name if side.first else WITH_STORE}.1"]
            pairs[name] = Pair(one, engines[f"{name}.2"], is_whole=side.first is not None)
        titles = {WITHOUT: "no remote tier", **{name: side.title for name, side in sides.items()}}
        blocks = prompt_tokens // chunk_tokens(comparison)
        block_bytes = chunk_tokens(comparison) * comparison.token_bytes()
        wire = stack.enter_context(wire_to(store.access, block_bytes, blocks, _CONNECTIONS))
        ttft = ttft_figures(titles, _prompts(run, prompt_tokens, pairs, store, wire))
        served = _rounds(run, scaling.high_cache(), pairs)
    # of each engine, which gets questions about every system prompt
    held = {"device_tokens": scaling.device_tokens(), "tier_tokens": scaling.tier_tokens()}
    workload = scaling.high_cache()
    return {
        "device": comparison.device,
        "ttft": {
            "prompt_tokens": prompt_tokens,
            "found_bytes": blocks * block_bytes,
            "slow_bytes_per_s": slow_bytes_per_s,
            **ttft,
        },
        "high_cache": {
            "shape": asdict(workload) | over_caches(workload, **held),
            **held,
            **workload_figures(workload, titles, served, comparison.token_bytes()),
        },
    }


def _transfers(sides: Mapping[str, Side]) -> dict[str, Mapping[str, Any]]:
    """Return what each engine is started with, by its name."""
    firsts = {f"{name}.1": side.first for name, side in sides.items() if side.first}
    return firsts | {f"{name}.2": side.second for name, side in sides.items()}


def tier(comparison: Comparison, tokens: int, port: int | None = None) -> dict[str, Any]:
    """Return the `kv_transfer_config` of a tier in memory, and of a store behind it where there is a port."""
    transfer = comparison.tier(tokens)
    remote = {
        "remote_url": f"redis://127.0.0.1:{port}",
        "remote_share": "bench",
        "remote_capacity_bytes": _STORE_BYTES,
        "remote_connections": _CONNECTIONS,
    }
    settings = transfer["kv_connector_extra_config"] | (remote if port is not None else {})
    return transfer | {"kv_connector_extra_config": settings}


def chunk_tokens(comparison: Comparison) -> int:
    """Return the tokens of a chunk."""
    settings = tier(comparison, 1)["kv_connector_extra_config"]
    blocks: int = settings.get("blocks_per_chunk", 1)
    return blocks * (comparison.serve_options.block_tokens or comparison.block_tokens)


# ---- a prompt that another engine has computed ----


def _warm_up(engine: BenchEngine, prompt_tokens: int) -> float:
    """Ask what no cache has, so that an engine learns its pace; returns the seconds of a long prompt."""
    engine.run(_SHORT)
    cold_s = engine.run(Ask(_LONG_SEED, prompt_tokens, forget=True)).seconds
    engine.run(_FLUSH)
    engine.rest(PINNING_TIMEOUT_S)
    return cold_s


def _prompts(
    run: Run, prompt_tokens: int, pairs: Mapping[str, Pair], store: BenchStore, wire: Wire
) -> list[Times]:
    times = list[Times]()
    for seed in range(run.repeats):
        times.append(_one_prompt(seed, prompt_tokens, pairs, store, wire))
        said = ", ".join(
            f"{name} {answer.seconds:.3f} s (hit {median(hit.seconds for hit in times[-1].hits[name]):.3f} s)"
            for name, answer in times[-1].asked.items()
        )
        run.say(f"remote: prompt {seed + 1} of {run.repeats}: {said}, wire {times[-1].wire.seconds:.3f} s")
    return times


def _one_prompt(
    seed: int, prompt_tokens: int, pairs: Mapping[str, Pair], store: BenchStore, wire: Wire
) -> Times:
    """Have a prompt computed where the store is, then ask the others, each time another one first."""
    ask, from_memory = Ask(seed, prompt_tokens), Ask(seed, prompt_tokens, forget=True)
    before = store.values
    in_memory = list[Answer]()
    for name, pair in pairs.items():
        if pair.is_whole and name != WITHOUT:
            pair.first.run(ask)
            pair.first.run(_FLUSH)
            in_memory.append(pair.first.run(from_memory))  # a second use, with which it is written
            pair.first.run(_FLUSH)
    store.wait_until_written(before, _QUIET_S, _WRITING_S)
    turn = seed % len(pairs)
    order = [*pairs][turn:] + [*pairs][:turn]
    asked = dict[str, Answer]()
    hits: dict[str, list[Answer]] = defaultdict(list)
    for name in order:
        pairs[name].second.rest()
        asked[name] = pairs[name].second.run(ask)
    for _ in range(_HITS_PER_PROMPT):
        for name in order:
            pairs[name].second.rest()
            hits[name].append(pairs[name].second.run(ask))
    return Times(asked, hits, in_memory, wire.read_plainly(), wire.read(), wire.write())


# ---- a workload over two engines ----


def _rounds(run: Run, workload: Workload, pairs: Mapping[str, Pair]) -> dict[str, list[RoundServed]]:
    """Have both engines of each side serve the same requests in turns, all sides in every round."""
    served: dict[str, list[RoundServed]] = defaultdict(list)
    whole = {name: [pair.first, pair.second] for name, pair in pairs.items() if pair.is_whole}
    with ThreadPoolExecutor(2) as both:

        def ask_both(name: str, asked: Workload, seed: str) -> RoundServed:
            rounds = [Round(asked, seed, engine=number, engines=2) for number in range(2)]
            return together(list(both.map(ask_round, whole[name], rounds)))

        for name in whole:
            ask_both(name, replace(workload, prompts_per_group=2), "first")  # thrown away: it is slower
        for number in range(_ROUNDS):
            for name in list(whole)[:: 1 if number % 2 == 0 else -1]:
                for engine in whole[name]:
                    engine.rest()
                served[name].append(ask_both(name, workload, f"high_cache {number}"))
                run.say(f"remote: workload, round {number + 1}, {name}: {served[name][-1].seconds:.1f} s")
    return served
