"""llm-d-router itself, with the arguments, configurations and rights that kvtier renders.

Skipped for the versions whose program is not given (`tests.picker.harness.pickers.llm_d`).
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cluster.harness.providers.provider import Cluster
from tests.picker.flavours.inputs import EXAMPLE, INPUTS
from tests.picker.flavours.llm_d_itself import BLOCK_BYTES, ENGINES, blocks, entries_are, start_of, until
from tests.picker.flavours.test_llm_d import REFUSED, broken
from tests.picker.harness.bootstrap import Gateway, Routing
from tests.picker.harness.client import post
from tests.picker.harness.engine import Engine
from tests.picker.harness.envoy import running_envoy
from tests.picker.harness.fleet import Fleet
from tests.picker.harness.pickers.llm_d import EACH_VERSION, LlmDStart, needs, rendered, running_llm_d
from tests.picker.harness.pool import Pool, made_pool

from kvtier_common.tier import Tier
from kvtier_scorer.config.flavors.llm_d import MIN_BLOCK_TOKENS
from kvtier_scorer.config.model import PickerInput, TierTokens

SCORES = "--emit-endpoint-scores"


@pytest.fixture(scope="module")
def pool(control_plane: Cluster, fleet: Fleet) -> Iterator[Pool]:
    with made_pool(control_plane, "llm-d-itself", fleet.port, fleet.ips) as made:
        yield made


def scraped_again(engine: Engine) -> None:
    """The picker has what the engine says now: it has read one answer when it asks again."""
    before = engine.scraped
    until(lambda: engine.scraped > before + 1)


@EACH_VERSION
@pytest.mark.parametrize("asked", INPUTS.values(), ids=INPUTS)
def test_rendered_configuration_is_loaded(
    version: str, asked: PickerInput, pool: Pool, tmp_path: Path
) -> None:
    with running_llm_d(start_of(version, asked), pool, ENGINES, tmp_path) as picker:
        assert picker.pick("once upon a time").engine


@needs("0.10")
@pytest.mark.parametrize(("where", "change"), REFUSED)
def test_what_the_model_of_it_refuses_it_refuses(
    where: str, change: object, pool: Pool, tmp_path: Path
) -> None:
    start = replace(start_of("0.10"), config=broken(where, change))
    with pytest.raises(RuntimeError, match="ended with"), running_llm_d(start, pool, ENGINES, tmp_path):
        pass


@EACH_VERSION
def test_indexes_hold_what_was_planned_and_no_more(
    version: str, pool: Pool, fleet: Fleet, tmp_path: Path
) -> None:
    arguments, config = rendered(version, engine={"kvCacheMemory": "20Gi"})
    with running_llm_d(LlmDStart(version, config, arguments), pool, ENGINES, tmp_path) as picker:
        first = fleet.addresses[0]
        for number in range(12):
            assert picker.pick(blocks(600, f"{number}"), [first]).engine == first
        # 20 GiB and 100 GiB of 262,144 bytes a token and 64 tokens an entry; 7,200 entries were asked for
        entries_are(picker, 1_280, 6_400)


@needs("0.10")
def test_scores_weigh_2_2_1_1_and_each_tier_has_its_own_index(
    pool: Pool, fleet: Fleet, tmp_path: Path
) -> None:
    """Of queue, utilisation, GPU and CPU; 0.9 does not tell its scores."""
    tiers = TierTokens({Tier.GPU: 32 * MIN_BLOCK_TOKENS, Tier.CPU: 128 * MIN_BLOCK_TOKENS})
    start = start_of("0.10", replace(EXAMPLE, tokens=tiers), SCORES)
    holder, busy, full = (fleet.engines[address] for address in fleet.addresses)
    with running_llm_d(start, pool, ENGINES, tmp_path) as picker:

        def scores(prompt: str) -> list[float]:
            told = picker.pick(prompt).scores
            return [told[each.address] for each in (holder, busy, full)]

        picker.pick(blocks(16, "kept"), [holder.address])
        entries_are(picker, 16, 16)
        assert scores(blocks(16, "kept")) == [6, 4, 4]
        assert scores(blocks(4, "kept") + blocks(12, "new")) == [4.5, 4, 4]
        picker.pick(blocks(32, "more"), [holder.address])
        entries_are(picker, 32, 60)
        assert scores(blocks(16, "kept")) == [5, 4, 4]
        try:
            busy.waiting, full.kv_cache_usage = 7, 0.5
            scraped_again(busy)
            scraped_again(full)
            entries_are(picker, 32, 60)
            assert scores(blocks(16, "kept")) == [6, 2, 3]
        finally:
            busy.waiting, full.kv_cache_usage = 0, 0.0


@EACH_VERSION
def test_requests_reach_engines_through_envoy(version: str, pool: Pool, fleet: Fleet, tmp_path: Path) -> None:
    """Over TLS, which pods serve: nothing in their arguments says otherwise."""
    start = start_of(version, EXAMPLE, "--secure-serving=true")
    with running_llm_d(start, pool, ENGINES, tmp_path) as picker:
        gateways = [
            Gateway(routing.name, picker.address, fleet.pods, routing, tls=True) for routing in Routing
        ]
        with running_envoy(gateways, tmp_path) as envoy:
            for routing in Routing:
                body = {"model": "fake", "prompt": blocks(16, routing.name)}
                url = f"{envoy.url(routing.name)}/v1/completions"
                answers = [post(url, json.dumps(body).encode()) for _ in range(4)]
                assert {answer.status for answer in answers} == {200}
                assert len({answer.engine for answer in answers}) == 1
                assert envoy.statistic(f"http.{routing.name}.ext_proc.streams_started") == 4


@EACH_VERSION
def test_a_last_block_that_is_not_full_takes_an_entry(version: str, pool: Pool, tmp_path: Path) -> None:
    with running_llm_d(start_of(version), pool, ENGINES, tmp_path) as picker:
        picker.pick("x" * (BLOCK_BYTES + 4))
        entries_are(picker, 2, 2)


@EACH_VERSION
def test_what_auto_tune_found_at_first_stays(version: str, pool: Pool, fleet: Fleet, tmp_path: Path) -> None:
    asked = replace(EXAMPLE, tokens=TierTokens({Tier.GPU: None, Tier.CPU: 409_600}))
    first = fleet.engines[fleet.addresses[0]]
    usual = first.num_gpu_blocks
    try:
        first.num_gpu_blocks = 8
        with running_llm_d(start_of(version, asked), pool, ENGINES, tmp_path) as picker:
            scraped_again(first)
            picker.pick(blocks(20, "before"), [first.address])
            entries_are(picker, 8, 20)
            first.num_gpu_blocks = usual
            scraped_again(first)
            picker.pick(blocks(20, "after"), [first.address])
            entries_are(picker, 8, 40)
    finally:
        first.num_gpu_blocks = usual


@needs("0.10")
@pytest.mark.parametrize(("rank", "scores"), [("0", [2, 4, 4]), ("1", [4, 4, 4])])
def test_of_an_engines_ranks_the_first_is_heard(
    rank: str, scores: list[float], pool: Pool, fleet: Fleet, tmp_path: Path
) -> None:
    engines = [fleet.engines[address] for address in fleet.addresses]
    waiting = {number: 5 if number == rank else 0 for number in ("0", "1")}
    series = [f'vllm:num_requests_waiting{{engine="{each}"}} {waiting[each]}' for each in waiting]
    usual = 'vllm:num_requests_waiting{model_name="fake",engine="0"} 0.0'
    with running_llm_d(start_of("0.10", EXAMPLE, SCORES), pool, ENGINES, tmp_path) as picker:
        try:
            engines[0].metrics = engines[0].exposition().replace(usual.encode(), "\n".join(series).encode())
            scraped_again(engines[0])
            told = picker.pick("once upon a time").scores
        finally:
            engines[0].metrics = None
        assert [told[engine.address] for engine in engines] == scores


@EACH_VERSION
def test_profiles_are_not_served(version: str, pool: Pool, tmp_path: Path) -> None:
    with running_llm_d(start_of(version), pool, ENGINES, tmp_path) as picker:
        assert picker.status("/debug/pprof/heap") == 404
    with running_llm_d(start_of(version, EXAMPLE, "--enable-pprof=true"), pool, ENGINES, tmp_path) as picker:
        assert picker.status("/debug/pprof/heap") == 200
