"""Policies: one a file, registered here by the name under which they are asked for and shown."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kvtier_scorer.simulate.engine.policy import Policy, Situation
from kvtier_scorer.simulate.policies import gaie_1_4, gaie_1_5, llm_d
from kvtier_scorer.simulate.policies.kvtier import Kvtier
from kvtier_scorer.simulate.policies.kvtier_precise import KvtierPrecise
from kvtier_scorer.simulate.policies.least_queue import LeastQueue
from kvtier_scorer.simulate.policies.random_pod import RandomPod
from kvtier_scorer.simulate.policies.round_robin import RoundRobin


@dataclass(frozen=True, slots=True)
class PolicyKind:
    """A policy that can be asked for.

    Attributes:
        about: What it does, in a few words.
        source: Where that is from: a release of the project whose picker it is, or nothing.
        build: Makes one for a situation.
        weighted: Whether it takes the weights that were asked for; others keep 2:2:1:1.
    """

    about: str
    build: Callable[[Situation], Policy]
    source: str = ""
    weighted: bool = False


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
        gaie_1_4.as_in_guide,
        f"{_GAIE_1_4}; {_GUIDE} (0.4.0)",
    ),
    "gaie-1.4-sized": PolicyKind(
        "true capacities, whole prompts seen; roots evicted before tails", gaie_1_4.as_sized, _GAIE_1_4
    ),
    "gaie-1.5": PolicyKind(
        "ignores lruCapacityPerServer: one index of 31,250 entries, 256 blocks of a prompt seen",
        gaie_1_5.as_in_guide,
        f"{_GAIE_1_5}; {_GUIDE} (0.4.0)",
    ),
    "gaie-1.5-sized": PolicyKind(
        "one index of 31,250 entries, so large that they are the CPU tier; whole prompts seen",
        gaie_1_5.as_sized,
        _GAIE_1_5,
    ),
    "llm-d-0.10": PolicyKind(
        "the guide's 82,000 entries of 64 tokens for 100 GiB, where 6,400 are true",
        llm_d.as_in_guide,
        f"{_LLM_D}; {_GUIDE} (0.5 and later)",
    ),
    "llm-d-0.10-sized": PolicyKind("true capacities in entries of 64 tokens", llm_d.as_sized, _LLM_D),
    KVTIER: PolicyKind("index guessed from what was sent", Kvtier, weighted=True),
    KVTIER_PRECISE: PolicyKind("index from the engines' KV events", KvtierPrecise, weighted=True),
}
"""In the order in which they are shown."""
