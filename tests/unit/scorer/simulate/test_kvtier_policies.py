"""Policies that use kvtier's own scheduler and index."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.unit.scorer.simulate.pools import asked, loads_of, picker, pool, prompts, situation, timed, trace

from kvtier_common.tier import OF_A_POD, Tier
from kvtier_scorer.config.model import KV_CACHE_UTILIZATION, PREFIX_SCORERS, QUEUE
from kvtier_scorer.scheduling.model import Prompt, block_hashes
from kvtier_scorer.simulate.blocks import blocks_of, prompt_token_ids
from kvtier_scorer.simulate.compare import compare
from kvtier_scorer.simulate.loop import Simulation
from kvtier_scorer.simulate.lru import find_prefix
from kvtier_scorer.simulate.policies import (
    KVTIER,
    KVTIER_PRECISE,
    POLICIES,
    Kvtier,
    KvtierPrecise,
    settings_for,
)
from kvtier_scorer.simulate.policy import Loads, weights_in_order
from kvtier_scorer.simulate.trace import PoolError


def test_kvtier_counts_what_it_sent_since_the_reading() -> None:
    requests = [asked((f"prompt-{number}", 160), at_s=0.1) for number in range(30)]
    built = POLICIES[KVTIER].build(situation(trace(*requests), pool(3)))
    loads = loads_of([1, 0, 1], [0] * 3, [0.0] * 3)
    assert {built.pick(request, loads, 0.1) for request in range(30)} == {0, 1, 2}


def test_kvtier_has_the_settings_that_the_operator_renders() -> None:
    found = trace(asked(("a", 20), at_s=0))
    settings = settings_for(situation(found, pool(2, disk=50), weights_in_order(3, 2, 1, 4, 5)))
    assert {each.name: each.weight for each in settings.scorers} == {
        QUEUE: 3,
        KV_CACHE_UTILIZATION: 2,
        PREFIX_SCORERS[Tier.GPU]: 1,
        PREFIX_SCORERS[Tier.CPU]: 4,
        PREFIX_SCORERS[Tier.DISK]: 5,
    }
    assert settings.prefix is not None
    assert settings.prefix.entries == {Tier.GPU: 100, Tier.CPU: 200, Tier.DISK: 50}
    assert settings.metrics.scrape_interval_ms == 100


def test_weights_of_tiers_that_are_not_there_are_told() -> None:
    found = trace(asked(("a", 20), at_s=0))
    with pytest.raises(PoolError, match=r"^--weights: "):
        Kvtier(situation(found, pool(2, cpu=0), weights_in_order(0, 0, 0, 1, 1)))


def _hashes(policy: Kvtier, request: int) -> NDArray[np.uint64]:
    tokens = prompt_token_ids(policy._trace, request, policy._first_token)
    return block_hashes(
        Prompt(policy._trace.models[request], "", b"", tokens), policy._scheduler._settings.prefix
    )


@given(prompts(), st.integers(30, 60), st.integers(0, 60), st.integers(0, 40))
def test_the_precise_index_is_what_the_engines_hold(
    given_prompts: list[list[tuple[str, int]]], gpu: int, cpu: int, disk: int
) -> None:
    found, where = timed(given_prompts), pool(2, gpu=gpu, cpu=cpu, disk=disk)
    policy = POLICIES[KVTIER_PRECISE].build(situation(found, where))
    assert isinstance(policy, KvtierPrecise)
    blocks = blocks_of(found, 16)
    simulation = Simulation(where, blocks, policy)
    simulation.run()
    for request in range(len(found)):
        own = blocks.of(request)
        believed = policy._index.match(_hashes(policy, request), np.array(sorted(policy._pods), np.int32))
        for tier in OF_A_POD:
            for place, number in enumerate(sorted(policy._pods)):
                true = find_prefix(simulation.caches.tier(tier), policy._pods[number], own, len(own))
                assert believed[tier, place] == true


def test_only_kvtier_takes_other_weights() -> None:
    found = timed([[("a", 40), (f"q{number}", 20)] for number in range(20)], gap_s=0.01)
    names = ["gaie-1.4", "llm-d-0.10", KVTIER]
    default = compare(names, found, pool(3))
    other = compare(names, found, pool(3), weights=weights_in_order(0, 1, 0, 0, 0))
    same = [default.figures[name].ttft_mean_s == other.figures[name].ttft_mean_s for name in names]
    assert same == [True, True, False]


def test_kvtier_keeps_roots_where_others_keep_tails() -> None:
    """A prompt that no longer fits the index altogether still counts from its first block."""
    found = trace(asked(("a", 160), at_s=0), asked(("b", 1_360), at_s=1), asked(("a", 160), at_s=2))
    where = pool(1, gpu=100, cpu=0)
    ours = POLICIES[KVTIER].build(situation(found, where))
    assert isinstance(ours, Kvtier)
    built = picker("gaie-1.4-sized", found, where)
    for request in (0, 1):
        ours.pick(request, Loads(1, 0.1), float(request))
        built.pick(request, Loads(1, 0.1), float(request))
    hashes = _hashes(ours, 2)
    assert ours._index.match(hashes, np.zeros(1, np.int32))[Tier.GPU].tolist() == [10]
    more = trace(asked(("a", 160), at_s=0), asked(("b", 1_520), at_s=1), asked(("a", 160), at_s=2))
    ours, built = Kvtier(situation(more, where)), picker("gaie-1.4-sized", more, where)
    for request in (0, 1):
        ours.pick(request, Loads(1, 0.1), float(request))
        built.pick(request, Loads(1, 0.1), float(request))
    assert ours._index.match(_hashes(ours, 2), np.zeros(1, np.int32))[Tier.GPU].tolist() == [5]
    _, blocks, index = built._scorers[0]
    assert index.match(blocks.of(2)).tolist() == [0]
