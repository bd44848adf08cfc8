"""One pod's and several pods' time, worked out by hand: see `pools.pod` for the speeds."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.scorer.simulate.pools import asked, pod, pool, prompts, situation, timed, trace

from kvtier_common.tier import Tier
from kvtier_scorer.simulate.blocks import blocks_of
from kvtier_scorer.simulate.compare import Figures
from kvtier_scorer.simulate.loop import Simulation, SimulationResult
from kvtier_scorer.simulate.policies import POLICIES, ROUND_ROBIN
from kvtier_scorer.simulate.policy import Loads
from kvtier_scorer.simulate.settings import (
    QWEN3_32B_2X_H100,
    PoolSettings,
    StoreSettings,
    compute_s,
    load_s,
    step_s,
)
from kvtier_scorer.simulate.trace import PoolError, Trace


def run(found: Trace, where: PoolSettings, policy: str = ROUND_ROBIN) -> SimulationResult:
    chosen = POLICIES[policy].build(situation(found, where))
    return Simulation(where, blocks_of(found, where.pod.block_tokens), chosen).run()


def one(found: Trace, **sizes: float) -> SimulationResult:
    return run(found, pool(1, **sizes))


def test_a_prompt_takes_a_step_and_its_tokens_and_an_answer_a_step_a_token() -> None:
    result = one(trace(asked(("a", 100), output=11, at_s=2.0)))
    assert result.ttft_s.tolist() == pytest.approx([0.11])
    assert result.end_s.tolist() == pytest.approx([2.0 + 0.11 + 10 * 0.01])


def test_found_blocks_are_not_computed_but_the_last_token_always_is() -> None:
    result = one(trace(asked(("a", 100), at_s=0), asked(("a", 100), at_s=1), asked(("b", 96), at_s=2),
                        asked(("b", 96), at_s=3)))  # fmt: skip
    assert result.hit_tokens[Tier.GPU].tolist() == [0, 96, 0, 80]
    assert result.ttft_s.tolist() == pytest.approx([0.11, 0.014, 0.106, 0.026])


def test_what_the_device_let_go_comes_from_the_cpu_tier_tails_first() -> None:
    a, b = asked(("a", 100), at_s=0), asked(("b", 100), at_s=1)
    result = one(trace(a, b, asked(("a", 100), at_s=2)), gpu=10)
    # 4 of the 7 blocks of a made room for b: the one that is not full and the last 3 that are
    assert result.hit_tokens[:, 2].tolist() == [48, 48, 0, 0]
    assert result.ttft_s[2] == pytest.approx(48 / 10_000 + 0.01 + 0.004)


def test_what_the_cpu_tier_let_go_comes_from_the_disk() -> None:
    requests = [asked((name, 100), at_s=number) for number, name in enumerate("aba")]
    result = one(trace(*requests), gpu=7, cpu=7, disk=20)
    assert result.hit_tokens[:, 2].tolist() == [0, 0, 96, 0]
    assert result.ttft_s[2] == pytest.approx(96 / 1_000 + 0.01 + 0.004)


def with_store(names: str, pods: int, **store: float) -> SimulationResult:
    """Prompts of 100 tokens in turn, a second apart, the last two at once."""
    times = [*range(len(names) - 1), len(names) - 2]
    requests = [asked((name, 100), at_s=at_s) for name, at_s in zip(names, times, strict=True)]
    settings = StoreSettings(**{"blocks": 100, "pod_bytes_per_s": 10_000.0, **store})  # type: ignore[arg-type]
    return run(trace(*requests), replace(pool(pods), store=settings))


def test_what_a_pod_used_twice_is_in_the_store_for_all() -> None:
    result = with_store("abaac", 2)
    assert result.hit_tokens[Tier.GPU].tolist() == [0, 0, 96, 0, 0]
    assert result.hit_tokens[Tier.REMOTE].tolist() == [0, 0, 0, 96, 0]
    assert result.ttft_s[3] == pytest.approx(96 / 10_000 + 0.01 + 0.004)
    # what was asked once by each pod is nowhere but there
    assert not with_store("aab", 2).hit_tokens.any()


def test_a_store_holds_what_was_used_last() -> None:
    """The first pod uses a twice and then b; of two prompts a store of six blocks has the latter."""
    asked_of_the_other = ("axaxbxbaxc", "axaxbxbbxc")
    roomy = [with_store(names, 2).hit_tokens[Tier.REMOTE, 7] for names in asked_of_the_other]
    assert roomy == [96, 96]
    narrow = [with_store(names, 2, blocks=6).hit_tokens[Tier.REMOTE, 7] for names in asked_of_the_other]
    assert narrow == [0, 96]


def test_a_store_that_is_slower_than_computing_is_not_read() -> None:
    """96 tokens are computed in 0.096 s, and read in as much, or behind another's."""
    assert not with_store("abaac", 2, pod_bytes_per_s=1_000.0).hit_tokens[Tier.REMOTE].any()
    shared = with_store("abcaaa", 3, bytes_per_s=2_000.0)
    assert shared.hit_tokens[Tier.REMOTE].tolist() == [0, 0, 0, 0, 96, 0]
    assert shared.ttft_s[4] == pytest.approx(96 / 2_000 + 0.01 + 0.004)


def test_a_store_of_nothing_is_refused() -> None:
    with pytest.raises(PoolError, match=r"^remote_blocks: must be"):
        StoreSettings(blocks=0, pod_bytes_per_s=1.0)


def test_without_tiers_what_the_device_let_go_is_computed_again() -> None:
    requests = [asked((name, 100), at_s=number) for number, name in enumerate("aba")]
    assert one(trace(*requests), gpu=7, cpu=0).ttft_s[2] == pytest.approx(0.11)


def test_a_request_that_does_not_fit_waits_and_nobody_overtakes_it() -> None:
    long, other = asked(("a", 100), output=11, at_s=0.0), asked(("b", 100), at_s=0.0)
    short = asked(("c", 10), at_s=0.01)
    result = one(trace(long, other, short), gpu=8)
    assert result.started == [0, 1, 2]
    # the first ends at 0.21; the short one, for which there was room, then shares a step with the other
    assert result.first_token_s.tolist() == pytest.approx([0.11, 0.21 + 0.12, 0.21 + 0.12])


def test_no_more_run_at_once_than_may() -> None:
    requests = [asked((name, 10), at_s=0.0) for name in "abc"]
    result = one(trace(*requests), max_running=1)
    assert result.first_token_s.tolist() == pytest.approx([0.02, 0.04, 0.06])


def test_prompts_that_fit_one_step_are_prefilled_together() -> None:
    requests = [asked((name, 10), at_s=0.0) for name in "abc"]
    # the first begins alone, the next two arrive while it is prefilled
    assert one(trace(*requests)).first_token_s.tolist() == pytest.approx([0.02, 0.05, 0.05])
    assert one(trace(*requests), step_tokens=10).first_token_s.tolist() == pytest.approx([0.02, 0.04, 0.06])


def test_a_long_prompt_takes_several_steps() -> None:
    assert one(trace(asked(("a", 100), at_s=0.0)), step_tokens=25).ttft_s[0] == pytest.approx(4 * 0.01 + 0.1)


def test_a_prefill_slows_down_answers() -> None:
    answering, prompt = asked(("a", 10), output=101, at_s=0.0), asked(("b", 100), at_s=0.5)
    alone = one(trace(answering)).end_s[0]
    # while the prompt takes 0.11 s the other gets one token rather than eleven
    assert one(trace(answering, prompt)).end_s[0] == pytest.approx(alone + 0.1)


def test_times_are_those_of_the_formulas() -> None:
    speeds = pod(attention_pairs_per_s=100.0, kv_read_bytes_per_s=1_000.0)
    assert compute_s(speeds, new_tokens=10, found_tokens=4) == pytest.approx(10 / 1000 + (40 + 55) / 100)
    assert load_s(speeds, {Tier.CPU: 2, Tier.DISK: 1}) == pytest.approx(32 / 10_000 + 16 / 1_000)
    assert step_s(speeds, context_tokens=50) == pytest.approx(0.01 + 50 / 1_000)


def test_the_preset_holds_what_the_guide_says() -> None:
    preset = QWEN3_32B_2X_H100
    assert preset.kv_bytes_per_token == 262_144
    assert (preset.blocks[Tier.GPU], preset.blocks[Tier.CPU] * preset.block_tokens) == (9_271, 409_600)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("gpu_blocks", {"gpu": 0}),
        ("cpu_blocks", {"cpu": -1}),
        ("step_s", {"step_s": 0.0}),
        ("step_s", {"step_s": float("nan")}),
        ("disk_load_bytes_per_s", {"load_bytes_per_s": {Tier.CPU: 1.0, Tier.DISK: 0.0}}),
    ],
)
def test_sizes_and_speeds_that_make_no_sense_are_refused(name: str, changes: dict[str, Any]) -> None:
    with pytest.raises(PoolError, match=f"^{name}: must be"):
        pod(**changes)


def test_pools_that_make_no_sense_are_refused() -> None:
    with pytest.raises(PoolError, match="pods: must be 1 or more"):
        pool(0)
    with pytest.raises(PoolError, match="scrape_interval_s: must be more than 0"):
        PoolSettings(pods=1, pod=pod(), scrape_interval_s=0)


def test_a_request_that_no_device_can_hold_is_told() -> None:
    with pytest.raises(
        PoolError, match="request 2 of the trace needs 8 blocks of 16 tokens, a pod's device holds 7"
    ):
        one(trace(asked(("a", 10), at_s=0), asked(("b", 112), at_s=1)), gpu=7)


def test_with_a_constant_concurrency_the_next_is_sent_when_one_ends() -> None:
    result = one(trace(*(asked((name, 10)) for name in "abcd"), concurrency=2))
    sent, end = result.sent_s, result.end_s
    assert sent.tolist()[:2] == [0, 0]
    assert sorted(sent[2:].tolist()) == sorted(end.tolist())[:2]


def test_metrics_are_as_old_as_the_last_reading() -> None:
    loads = Loads(2, interval_s=0.1)
    loads.change(0, 0.05, queue_depth=3, running=2, utilization=0.5)
    loads.read(0.09)
    assert loads.queue_depth.tolist() == [0, 0]
    loads.change(0, 0.15, queue_depth=7, running=4, utilization=0.75)
    # the reading at 0.1 saw what was so from 0.05 on
    assert (loads.queue_depth.tolist(), loads.running.tolist()) == ([3, 0], [2, 0])
    loads.read(0.31)
    assert loads.read_at_s == pytest.approx(0.3)
    assert (loads.queue_depth.tolist(), loads.kv_cache_utilization.tolist()) == ([7, 0], [0.75, 0])


@given(prompts(), st.sampled_from(sorted(POLICIES)), st.integers(1, 3), st.integers(30, 60))
def test_every_request_is_served_and_the_device_is_never_overfull(
    given_prompts: list[list[tuple[str, int]]], policy: str, pods: int, gpu: int
) -> None:
    found, where = timed(given_prompts), pool(pods, gpu=gpu, cpu=gpu)
    chosen = POLICIES[policy].build(situation(found, where))
    simulation = Simulation(where, blocks_of(found, 16), chosen)
    result = simulation.run()
    assert np.isfinite(result.end_s).all()
    assert sorted(result.started) == list(range(len(found)))
    assert (result.sent_s <= result.first_token_s).all()
    assert (result.first_token_s < result.end_s).all()
    assert (result.hit_tokens.sum(axis=0) < found.prompt_tokens).all()
    assert set(result.pod.tolist()) <= set(range(pods))
    gpu_cache = simulation.caches.tier(Tier.GPU)
    # nothing is held when all is done
    assert not gpu_cache.holders.any()
    assert (gpu_cache.idle == gpu_cache.key.shape[1]).all()


def test_figures_are_those_of_the_requests() -> None:
    found = trace(asked(("a", 100), output=10, at_s=0.0), asked(("a", 100), output=10, at_s=1.0))
    figures = Figures.of(run(found, pool(2), "round-robin"))
    assert (figures.hit_rate, figures.load_variation, figures.requests) == (0.0, 0.0, 2)
    figures = Figures.of(one(found))
    assert figures.hit_rate == figures.tier_hit_rate[Tier.GPU] == pytest.approx(0.48)
    assert figures.ttft_mean_s == pytest.approx((0.11 + 0.014) / 2)
    assert figures.e2e_mean_s == pytest.approx((0.2 + 0.104) / 2)
    assert figures.tokens_per_s == pytest.approx(220 / 1.104)


def test_the_names_of_figures_are_what_people_read() -> None:
    found = Figures(
        hit_rate=0.5,
        tier_hit_rate=dict.fromkeys(Tier, 0.25),
        ttft_mean_s=1.0,
        ttft_p90_s=2.0,
        e2e_mean_s=3.0,
        tokens_per_s=4.0,
        load_variation=0.0,
        tenant_hit_rate={},
        ttft_last_tenth_s=1.0,
        requests=1,
        ttft_s=np.array([1.0]),
    ).to_json()
    assert " ".join(found) == (
        "hit_rate tier_hit_rate ttft_mean_s ttft_p90_s e2e_mean_s tokens_per_s load_variation "
        "tenant_hit_rate ttft_last_tenth_s requests"
    )
    assert " ".join(found["tier_hit_rate"]) == "gpu cpu disk remote"
