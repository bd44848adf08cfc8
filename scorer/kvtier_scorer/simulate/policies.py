"""Policies by the name under which they are asked for and shown; kvtier's is the real scheduler and index."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvtier_common.tier import Tier
from kvtier_scorer.config.flavors import picker_config
from kvtier_scorer.config.model import NoScorerError, PickerInput, TierTokens
from kvtier_scorer.config.parse import parse_settings
from kvtier_scorer.config.settings import Metrics, PickerSettings
from kvtier_scorer.index.prefix_index import PrefixIndex
from kvtier_scorer.scheduling.model import Pick, PickRequest, Prompt
from kvtier_scorer.scheduling.pods import PodInfo, PodLoad, PodTable
from kvtier_scorer.scheduling.scheduler import Scheduler
from kvtier_scorer.simulate.blocks import blocks_of, first_tokens, prompt_token_ids
from kvtier_scorer.simulate.caches import CacheListener
from kvtier_scorer.simulate.policy import Loads, Policy, Situation
from kvtier_scorer.simulate.trace import PoolError
from kvtier_scorer.simulate.upstream_pickers import (
    gaie_1_4_in_guide,
    gaie_1_4_sized,
    gaie_1_5_in_guide,
    gaie_1_5_sized,
    llm_d_in_guide,
    llm_d_sized,
)

_MS_PER_S: Final = 1000
_NONE: Final = -1


class Kvtier:
    """Picks with kvtier's scheduler; the index guesses what pods hold from what was sent to them."""

    def __init__(self, situation: Situation) -> None:
        pool = situation.pool
        self._trace = situation.trace
        self._first_token = first_tokens(situation.trace)
        settings = settings_for(situation)
        self._index = PrefixIndex()
        self._table = PodTable(self._index)
        self._addresses = [f"pod-{number}" for number in range(pool.pods)]
        self._pods = {
            self._table.put(PodInfo(address, address), pool.pod.blocks): number
            for number, address in enumerate(self._addresses)
        }
        rng = np.random.default_rng(situation.random.getrandbits(64))
        self._scheduler = Scheduler(settings, self._table, self._index, rng)
        self._read_at_s = -1.0

    @property
    def listener(self) -> CacheListener | None:
        """Nobody: this picker guesses."""
        return None

    def pick(self, request: int, loads: Loads, now_s: float) -> int:
        """The scheduler's pod; the index learns of it."""
        if loads.read_at_s > self._read_at_s:
            self._read(loads)
        tokens = prompt_token_ids(self._trace, request, self._first_token)
        prompt = Prompt(self._trace.models[request], "", b"", tokens)
        picked = self._scheduler.pick(PickRequest(prompt), now_s)
        self._note_pick(request, picked)
        self._scheduler.record_sent(picked)
        return self._pods[picked.pod]

    def _note_pick(self, request: int, picked: Pick) -> None:
        """Is told of each pick before the index learns of it."""

    def _read(self, loads: Loads) -> None:
        self._read_at_s = loads.read_at_s
        for number, address in enumerate(self._addresses):
            load = PodLoad(
                queue_depth=int(loads.queue_depth[number]),
                running=int(loads.running[number]),
                kv_cache_utilization=float(loads.kv_cache_utilization[number]),
                loras=frozenset(),
                at_s=loads.read_at_s,
            )
            self._table.load(address, load)


def settings_for(situation: Situation) -> PickerSettings:
    """The picker's settings as the operator would render them, with the pool's scrape interval."""
    try:
        settings = parse_settings(picker_config("builtin", _input(situation)).text)
    except NoScorerError as error:
        raise PoolError(f"--weights: {error}") from None
    # of the same age at which its operator would call them stale
    interval_ms = round(situation.pool.scrape_interval_s * _MS_PER_S)
    return replace(settings, metrics=Metrics(scrape_interval_ms=interval_ms))


def _input(situation: Situation) -> PickerInput:
    pod = situation.pool.pod
    return PickerInput(
        weights=situation.weights,
        tokens=TierTokens({tier: blocks * pod.block_tokens for tier, blocks in pod.blocks.items() if blocks}),
        engine_block_tokens=pod.block_tokens,
    )


class KvtierPrecise(Kvtier):
    """Picks with kvtier's scheduler over an index that the simulated caches keep true.

    Events arrive at once. Blocks that no second request has are left out: nothing would ever match them.
    """

    def __init__(self, situation: Situation) -> None:
        super().__init__(situation)
        self._blocks = blocks_of(situation.trace, situation.pool.pod.block_tokens)
        self._hash_of = np.zeros(self._blocks.named + 1, np.uint64)
        self._before = np.full(self._blocks.named + 1, _NONE, np.int64)
        self._numbers = {number: own for own, number in self._pods.items()}
        for own in self._pods:
            self._index.set_precise(own, precise=True)

    @property
    def listener(self) -> CacheListener | None:
        """This picker itself."""
        return self

    def on_stored(self, pod: int, tier: Tier, blocks: NDArray[np.int32]) -> None:
        """Tell the index, in runs of blocks that follow one another."""
        gaps = np.flatnonzero(self._before[blocks[1:]] != blocks[:-1]) + 1
        for run in np.split(blocks, gaps):
            before = int(self._before[run[0]])
            parent = None if before == _NONE else int(self._hash_of[before])
            self._index.store(self._numbers[pod], tier, self._hash_of[run], parent)

    def on_removed(self, pod: int, tier: Tier, blocks: NDArray[np.int32]) -> None:
        """Tell the index."""
        self._index.remove(self._numbers[pod], tier, self._hash_of[blocks])

    def _note_pick(self, request: int, picked: Pick) -> None:
        blocks = self._blocks.of(request, len(picked.hashes))
        named = blocks[blocks >= 0]
        self._hash_of[named] = picked.hashes[: len(named)]
        self._before[named[1:]] = named[:-1]


class LeastQueue:
    """Picks the shortest queue; of equal ones the fewest running requests, then any."""

    listener = None

    def __init__(self, situation: Situation) -> None:
        self._random = situation.random

    def pick(self, request: int, loads: Loads, now_s: float) -> int:  # noqa: ARG002 - a policy's signature
        """The least busy pod."""
        shortest = np.flatnonzero(loads.queue_depth == loads.queue_depth.min())
        running = loads.running[shortest]
        return int(self._random.choice(shortest[running == running.min()]))


class RandomPod:
    """Picks a pod at random, whatever they do."""

    listener = None

    def __init__(self, situation: Situation) -> None:
        self._pods = situation.pool.pods
        self._random = situation.random

    def pick(self, request: int, loads: Loads, now_s: float) -> int:  # noqa: ARG002 - a policy's signature
        """A pod at random."""
        return self._random.randrange(self._pods)


class RoundRobin:
    """Picks the pods in turn, whatever they do."""

    listener = None

    def __init__(self, situation: Situation) -> None:
        self._pods = situation.pool.pods
        self._next = 0

    def pick(self, request: int, loads: Loads, now_s: float) -> int:  # noqa: ARG002 - a policy's signature
        """The next pod."""
        number = self._next
        self._next = (number + 1) % self._pods
        return number


@dataclass(frozen=True, slots=True)
class PolicyKind:
    """A policy that can be asked for."""

    about: str  # what it does, in a few words
    build: Callable[[Situation], Policy]  # makes one for a situation
    source: str = ""  # where that is from: a release of the project whose picker it is, or nothing
    weighted: bool = False  # whether it takes the weights that were asked for; others keep 2:2:1:1


_PLUGINS: Final = "pkg/epp/framework/plugins"
_GAIE_1_4: Final = (
    f"gateway-api-inference-extension v1.4.0, {_PLUGINS}/scheduling/scorer/prefix; 1.2 and 1.3 alike"
)
_GAIE_1_5: Final = (
    f"gateway-api-inference-extension v1.5.0, {_PLUGINS}/requestcontrol/dataproducer/approximateprefix"
)
_LLM_D: Final = f"llm-d-router v0.10.0, {_PLUGINS}/requestcontrol/dataproducer/approximateprefix; 0.9 alike"
_GUIDE: Final = "llm-d's guides/tiered-prefix-cache"

KVTIER: Final = "kvtier"
KVTIER_PRECISE: Final = "kvtier-precise"
ROUND_ROBIN: Final = "round-robin"

POLICIES: Final[Mapping[str, PolicyKind]] = {
    ROUND_ROBIN: PolicyKind("one pod after another", RoundRobin),
    "random": PolicyKind("any pod", RandomPod),
    "least-queue": PolicyKind(
        "the shortest queue as last read, then the fewest running requests", LeastQueue
    ),
    "gaie-1.4": PolicyKind(
        "the guide's 41,000 entries for 100 GiB, 256 blocks of a prompt seen; roots evicted before tails",
        gaie_1_4_in_guide,
        f"{_GAIE_1_4}; {_GUIDE} (0.4.0)",
    ),
    "gaie-1.4-sized": PolicyKind(
        "true capacities, whole prompts seen; roots evicted before tails", gaie_1_4_sized, _GAIE_1_4
    ),
    "gaie-1.5": PolicyKind(
        "ignores lruCapacityPerServer: one index of 31,250 entries, 256 blocks of a prompt seen",
        gaie_1_5_in_guide,
        f"{_GAIE_1_5}; {_GUIDE} (0.4.0)",
    ),
    "gaie-1.5-sized": PolicyKind(
        "one index of 31,250 entries, so large that they are the CPU tier; whole prompts seen",
        gaie_1_5_sized,
        _GAIE_1_5,
    ),
    "llm-d-0.10": PolicyKind(
        "the guide's 82,000 entries of 64 tokens for 100 GiB, where 6,400 are true",
        llm_d_in_guide,
        f"{_LLM_D}; {_GUIDE} (0.5 and later)",
    ),
    "llm-d-0.10-sized": PolicyKind("true capacities in entries of 64 tokens", llm_d_sized, _LLM_D),
    KVTIER: PolicyKind("index guessed from what was sent", Kvtier, weighted=True),
    KVTIER_PRECISE: PolicyKind("index from the engines' KV events", KvtierPrecise, weighted=True),
}
"""In the order in which they are shown."""
