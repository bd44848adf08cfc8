"""Policies by the name under which they are asked for and shown, and those that know nothing of prefixes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from kvtier_scorer.simulate.kvtier_picker import Kvtier, KvtierPrecise
from kvtier_scorer.simulate.policy import Loads, Policy, Situation
from kvtier_scorer.simulate.upstream_pickers import (
    gaie_1_4_in_guide,
    gaie_1_4_sized,
    gaie_1_5_in_guide,
    gaie_1_5_sized,
    llm_d_in_guide,
    llm_d_sized,
)


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
