"""Bytes and tokens of every tier, worked out by hand."""

from dataclasses import replace

import pytest
from tests.cases.planning import check_input, plan_sizes, resource

from kvtier_common.tier import Tier
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.tiers import TierTraits, serve_tiers
from kvtier_operator.planning.tiers.capacity import chunk_bytes

GIB = 1024**3


@pytest.mark.parametrize("backend", ["KVTier", "Native", "LMCache", "LMCacheMP"])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_hundred_gib_of_qwen3_32b(backend: str, ranks: int) -> None:
    # 107,374,182,400 / 262,144 B = 409,600 tokens, whatever the ranks and the size of a chunk
    tiers, _, _ = plan_sizes(resource(backend=backend, engine={"tensorParallelSize": ranks}))
    assert tiers.cpu.tokens == 409_600
    assert tiers.cpu.capacity_bytes == 100 * GIB
    assert tiers.cpu.bytes_per_rank == 100 * GIB // ranks


def test_engines_of_one_pod_share_the_capacity() -> None:
    tiers, _, _ = plan_sizes(resource(engine={"tensorParallelSize": 2, "dataParallelSize": 4}))
    assert tiers.cpu.bytes_per_rank == 100 * GIB // 8
    assert tiers.cpu.tokens == 409_600


@pytest.mark.parametrize("engine", [{"kvCacheMemory": "30Gi"}, {"gpu": "h200"}])
def test_room_for_media_is_taken_off_the_devices_cache(engine: dict[str, str]) -> None:
    def cache_bytes(model: str, *words: str) -> int:
        tiers, _, _ = plan_sizes(resource(model, engine={"extraArgs": [*words], **engine}))
        assert tiers.gpu is not None
        return tiers.gpu.bytes_per_rank

    asked = "--mm-ipc-gpu-memory-gb=10"
    images, text = "google/gemma-3-27b-it", "Qwen/Qwen3-32B"
    assert cache_bytes(images) - cache_bytes(images, asked) == 10 * GIB
    assert cache_bytes(text) == cache_bytes(text, asked)


def test_only_whole_chunks_count() -> None:
    # one block of 16 tokens is 4 MiB; 3 of them and a bit hold 48 tokens
    one = resource(cpu="13Mi", backend="Native")
    tiers, _, _ = plan_sizes(one)
    assert tiers.cpu.tokens == 48


def test_chunks_are_rounded_up_to_the_backends_alignment() -> None:
    # 100 B a token x 16 tokens = 1,600 B, stored in 4,096 B: 1 MiB holds 256 of them
    given = check_input(resource("x/y", cpu="1Mi", backend="Native", geometry={"kvBytesPerToken": 100}))
    assert chunk_bytes(given.geometry, given.backend) == 4096
    assert given.tiers.cpu.tokens == 256 * 16


@pytest.mark.parametrize(
    ("backend", "gpu", "one_chunk"),
    # 16 x 70,272 B are 1,124,352; a kernel of Grace has pages of 64 KiB, to which vLLM rounds
    [("Native", "h200", 1_126_400), ("Native", "gh200", 1_179_648), ("KVTier", "gh200", 4_497_408)],
)
def test_chunks_are_whole_pages_of_the_kernel(backend: str, gpu: str, one_chunk: int) -> None:
    given = check_input(resource("deepseek-ai/DeepSeek-V3", backend=backend, engine={"gpu": gpu}))
    assert chunk_bytes(given.geometry, given.backend) == one_chunk


@pytest.mark.parametrize(
    ("model", "backend", "said"),
    [
        ("Qwen/Qwen3-32B", "KVTier", "keep tokens alone"),
        ("openai/gpt-oss-20b", "KVTier", ""),
    ],
)
def test_a_prefix_length_that_changes_nothing_is_told(model: str, backend: str, said: str) -> None:
    def planned(**prefix: int) -> Plan:
        one = resource(model, backend=backend, tiers={"cpu": {"capacity": "100Gi", **prefix}})
        return make_plan(one, Observed())

    short, without = planned(expectedPrefixTokens=2048), planned()
    told = [note for note in short.notes if "expectedPrefixTokens changes nothing" in note]
    assert (short.tiers == without.tiers) is bool(said)
    assert [said in note for note in told] == [True] * bool(said)
    assert not any("expectedPrefixTokens" in note for note in without.notes)


def test_replicated_heads_cost_tokens() -> None:
    tiers, _, _ = plan_sizes(resource(engine={"tensorParallelSize": 16}))
    assert tiers.cpu.tokens == 204_800


@pytest.mark.parametrize("backend", ["KVTier", "Native", "LMCache"])
def test_a_latent_is_kept_once_for_all_ranks(backend: str) -> None:
    # 100 GiB / 70,272 B = 1,527,979 tokens, less what does not fill a chunk or its alignment
    tiers, _, _ = plan_sizes(
        resource("deepseek-ai/DeepSeek-V3", backend=backend, engine={"tensorParallelSize": 8})
    )
    assert 0.995 * 1_527_979 < tiers.cpu.tokens <= 1_527_979


def test_each_rank_is_rounded_up_to_a_page() -> None:
    # 10 GiB over 3 ranks: 3,579,139,413.3 B each, in 1,707 pages of 2 MiB
    one = resource(
        "x/y",
        cpu="10Gi",
        geometry={"layers": 6, "kvHeads": 3, "headDim": 64},
        engine={"tensorParallelSize": 3},
        tiers={"cpu": {"capacity": "10Gi", "hugepages": {"policy": "Require"}}},
    )
    tiers, budget, _ = plan_sizes(one)
    assert tiers.cpu.hugepages is not None
    assert tiers.cpu.hugepages.pages == 3 * 1707
    assert tiers.cpu.bytes_per_rank == 1707 * 2 * 1024**2
    assert budget.requests["hugepages-2Mi"] == budget.limits["hugepages-2Mi"] == f"{3 * 1707 * 2}Mi"


def test_a_disk_tier_of_lmcache() -> None:
    # 1 TiB / 262,144 B = 4,194,304 tokens
    tiers, _, _ = plan_sizes(
        resource(backend="LMCache", tiers={"disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}})
    )
    assert tiers.disk is not None
    assert tiers.disk.tokens == 4_194_304


def test_a_disk_tier_of_kvtier_has_its_index_within() -> None:
    # (512 GiB - 1 MiB) / (64 x 262,144 B + 5 x 52 B + 24 B + 128 B) = 32,767 chunks in each of two engines
    disk = {"disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}}
    tiers, _, _ = plan_sizes(resource(tiers=disk, engine={"tensorParallelSize": 2, "dataParallelSize": 2}))
    assert tiers.disk is not None
    assert tiers.disk.capacity_bytes == 1024 * GIB
    assert tiers.disk.bytes_per_rank == 256 * GIB
    assert tiers.disk.tokens == 2 * 32_767 * 64


def test_the_device_cache_on_cpu_is_4_gib_a_rank() -> None:
    tiers, _, _ = plan_sizes(resource(engine={"device": "cpu", "blockSize": 32, "tensorParallelSize": 2}))
    assert tiers.gpu is not None
    assert tiers.gpu.capacity_bytes == 8 * GIB
    assert tiers.gpu.tokens == 4 * GIB // 131_072


def test_the_device_cache_given_by_hand() -> None:
    tiers, _, _ = plan_sizes(resource(engine={"kvCacheMemory": "20Gi", "tensorParallelSize": 2}))
    assert tiers.gpu is not None
    assert tiers.gpu.tokens == 20 * GIB // 131_072


def test_the_device_cache_by_estimate() -> None:
    # 80 GiB x 0.9 - 65,524,246,528 B / 2 of weights - 4 GiB; a block of 16 tokens takes 2 MiB on a rank
    tiers, _, _ = plan_sizes(
        resource(engine={"gpuMemory": "80Gi", "gpuMemoryUtilization": 0.9, "tensorParallelSize": 2})
    )
    assert tiers.gpu is not None
    assert tiers.gpu.bytes_per_rank == 40_252_320_768
    assert tiers.gpu.tokens == 19_193 * 16


@pytest.mark.parametrize("engine", [{}, {"tensorParallelSize": 8}])
def test_the_device_cache_is_not_guessed(engine: dict[str, int]) -> None:
    assert plan_sizes(resource(engine=engine))[0].gpu is None


def test_no_weights_no_estimate() -> None:
    one = resource("deepseek-ai/DeepSeek-V3", engine={"gpuMemory": "141Gi", "tensorParallelSize": 8})
    assert plan_sizes(one)[0].gpu is None


NEXT = "Qwen/Qwen3-Next-80B-A3B-Instruct"  # 24,576 B a token, blocks of 544
STATES_BYTES = 36 * 544 * 2_048  # of a prefix
HELD = 100 * GIB // (544 * 24_576) * 544
DISK = {"disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}}


@pytest.mark.parametrize(
    ("expected", "longest", "prefix"),
    [
        (2_048, None, 2_048),
        (None, 8_192, 8_192),
        (None, None, 262_144),  # the model's own
        (16, None, 544),  # what is shorter than a block is not cached
    ],
)
def test_states_of_the_prefixes_take_their_part(
    expected: int | None, longest: int | None, prefix: int
) -> None:
    cpu = {} if expected is None else {"expectedPrefixTokens": expected}
    one = resource(NEXT, tiers={"cpu": {"capacity": "100Gi", **cpu}}, engine={"maxModelLen": longest})
    given = check_input(one)
    tier = given.tiers.cpu
    left = HELD * prefix * 24_576 // (prefix * 24_576 + STATES_BYTES)
    assert tier.tokens == left // 544 * 544
    assert tier.held_tokens == HELD
    assert given.router.entries.get(Tier.CPU) == -(-tier.tokens // given.router.tokens_per_entry)


def test_a_disk_keeps_states_too() -> None:
    one = resource(NEXT, tiers={"cpu": {"capacity": "100Gi", "expectedPrefixTokens": 1_632}, **DISK})
    disk = check_input(one).tiers.disk
    assert disk is not None
    assert disk.tokens / disk.held_tokens == pytest.approx(0.5, abs=0.001)  # 1,632 x 24,576 = STATES_BYTES


@pytest.mark.parametrize("model", [NEXT, "google/gemma-3-27b-it", "openai/gpt-oss-120b"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_device_and_memory_of_one_size_hold_the_same_prefixes(model: str, ranks: int) -> None:
    given = check_input(
        resource(
            model,
            tiers={"cpu": {"capacity": "100Gi", "expectedPrefixTokens": 4_000}},
            engine={"kvCacheMemory": f"{100 // ranks}Gi", "tensorParallelSize": ranks},
        )
    )
    gpu, cpu = given.tiers.gpu, given.tiers.cpu
    assert gpu is not None
    assert gpu.tokens == pytest.approx(cpu.tokens, rel=0.001)
    assert gpu.states_tokens == pytest.approx(cpu.states_tokens, rel=0.001)
    assert given.router.entries.get(Tier.GPU) == -(-gpu.tokens // given.router.tokens_per_entry)


@pytest.mark.parametrize(
    ("arguments", "engine", "step"),
    [
        ([], {}, 8_192),
        ([], {"gpuMemory": "24Gi"}, 2_048),
        ([], {"gpuMemory": "180Gi"}, 16_384),
        ([], {"gpu": "b200"}, 16_384),
        ([], {"gpu": "a100-80"}, 2_048),
        (["--max-num-batched-tokens", "4096"], {}, 4_096),
    ],
)
def test_lmcache_s_server_keeps_states_at_each_step(
    arguments: list[str], engine: dict[str, str], step: int
) -> None:
    one = resource(NEXT, backend="LMCacheMP", engine={"extraArgs": arguments, **engine})
    given = check_input(one)
    of_tokens, of_states = 262_144 * 24_576, 262_144 // step * given.geometry.bytes_per_prefix
    assert given.tiers.cpu.tokens == pytest.approx(
        given.tiers.cpu.held_tokens * of_tokens / (of_tokens + of_states), rel=0.001
    )


def test_models_without_states_keep_tokens_alone() -> None:
    one = resource(tiers={"cpu": {"capacity": "100Gi", "expectedPrefixTokens": 16}})
    assert check_input(one).tiers.cpu.states_tokens == 0


def test_a_tier_of_unlike_blocks_is_counted_in_the_larger_ones() -> None:
    # vLLM's own connector: 5 full layers with blocks of 32 tokens x 4 KiB, 25 windows with 16 x 8 KiB
    full = {"head_dim": 128, "num_attention_heads": 8, "num_key_value_heads": 4, "num_hidden_layers": 30}
    kinds = (["sliding_attention"] * 5 + ["full_attention"]) * 5
    config = full | {"sliding_window": 128, "layer_types": kinds, "global_head_dim": 64}
    given = check_input(resource("x/y", backend="Native"), Observed(model_config=config))
    assert given.geometry.group_block_tokens == (32, 16)
    assert (given.backend.tokens_per_chunk, given.router.tokens_per_entry) == (32, 64)
    assert chunk_bytes(given.geometry, given.backend) == 5 * 32 * 4 * 2 * 64 * 2


def test_a_kind_of_tier_that_nothing_gives_bytes_is_an_error() -> None:
    parts = check_input(
        resource(tiers={"disk": {"capacity": "1Ti", "volume": {"hostPath": {"path": "/mnt"}}}})
    )
    assert serve_tiers(parts.spec, parts.geometry, parts.backend) == parts.backend
    without = replace(parts.backend, bytes_per_rank={Tier.CPU: GIB})
    with pytest.raises(LookupError, match=r"tier disk has no bytes_per_rank.*planning/tiers/disk\.py"):
        serve_tiers(parts.spec, parts.geometry, without)
    with pytest.raises(TypeError, match="serve"):
        TierTraits()  # type: ignore[call-arg]
