"""Host memory that options take, by reports of users and by what vLLM's code does."""

from typing import Any, Final

import pytest
from tests.cases.planning import plan_sizes, resource

from kvtier_operator.planning.arguments.batches import sequences_of

GIB: Final = 1024**3
DENSE: Final = "Qwen/Qwen3-32B"
DENSE_BYTES: Final = 65_524_246_528
MOE: Final = "Qwen/Qwen3-235B-A22B"
IMAGES: Final = "Qwen/Qwen3.5-35B-A3B"
STREAMED: Final = ("--load-format", "runai_streamer")
STREAMER_BYTES: Final = 40_000_000_000


def memory_of(model: str, *words: str, **engine: Any) -> dict[str, int]:  # noqa: ANN401 - as in YAML
    return tiered(model, "1Gi", *words, **engine)


def tiered(model: str, cpu: str, *words: str, **engine: Any) -> dict[str, int]:  # noqa: ANN401 - as in YAML
    one = resource(model, cpu=cpu, engine={"extraArgs": [*words], **engine})
    _, budget, _ = plan_sizes(one)
    assert sum(line.bytes for line in budget.memory) % 1024**2 == 0
    return {line.what: line.bytes for line in budget.memory}


@pytest.mark.parametrize(
    ("words", "env", "loading_bytes"),
    [
        (STREAMED, {}, 8 * STREAMER_BYTES),
        ((*STREAMED, "--model-loader-extra-config", '{"memory_limit": 5000000000}'), {}, 40_000_000_000),
        (STREAMED, {"RUNAI_STREAMER_MEMORY_LIMIT": "1000000000"}, 8_000_000_000),
        (STREAMED, {"RUNAI_STREAMER_MEMORY_LIMIT": "9" * 5000}, 8 * STREAMER_BYTES),
        (("--load-format=runai_streamer", "--model-loader-extra-config.memory_limit=0"), {}, 0),
        ((*STREAMED, "--model-loader-extra-config.memory_limit", "5g"), {}, 40_000_000_000),
        (("--load-format", "safetensors"), {}, 0),
    ],
)
def test_a_streamers_buffers_are_in_every_rank(
    words: tuple[str, ...], env: dict[str, str], loading_bytes: int
) -> None:
    variables = [{"name": name, "value": value} for name, value in env.items()]
    memory = memory_of(MOE, *words, tensorParallelSize=8, env=variables)
    assert memory.get("buffers while loading", 0) == max(0, loading_bytes - GIB)


def test_the_whole_checkpoint_is_buffered_once_where_ranks_share_it() -> None:
    weights = memory_of(
        DENSE, *STREAMED, "--model-loader-extra-config.distributed=true", tensorParallelSize=4
    )
    assert weights["buffers while loading"] == DENSE_BYTES - GIB


def test_a_tier_that_is_larger_than_the_buffers_covers_them() -> None:
    """Its memory is taken when the weights are loaded."""
    assert "buffers while loading" not in tiered(DENSE, "64Gi", *STREAMED)


def test_weights_are_in_memory_once_more_while_an_engine_sleeps() -> None:
    memory = memory_of(DENSE, "--enable-sleep-mode", tensorParallelSize=2)
    assert memory["weights while asleep"] == 2 * DENSE_BYTES  # page-locked by powers of two
    assert "weights while asleep" not in memory_of(DENSE, "--enable-sleep-mode", "--no-enable-sleep-mode")


@pytest.mark.parametrize(
    ("words", "engines", "cache_bytes"),
    [
        ((), 1, 8 * GIB),
        ((), 2, 8 * GIB),
        (("--mm-processor-cache-gb", "60", "--api-server-count", "4"), 1, 480 * GIB),
        (("--mm-processor-cache-gb=0.5",), 1, GIB),
        (("--mm-processor-cache-gb=0",), 1, 0),
        (("--mm-processor-cache-gb=nan",), 1, 8 * GIB),  # refused, and planned as if it were not there
        (("--mm-processor-cache-gb=inf",), 1, 8 * GIB),
        (("--language-model-only",), 1, 0),
        (("--limit-mm-per-prompt", '{"image": 0, "video": {"count": 0}, "audio": 0}'), 1, 0),
        (("--limit-mm-per-prompt.image=0",), 1, 8 * GIB),
    ],
)
def test_prepared_images_are_cached(words: tuple[str, ...], engines: int, cache_bytes: int) -> None:
    memory = memory_of(IMAGES, *words, dataParallelSize=engines)
    assert memory.get("multimodal cache", 0) == cache_bytes
    assert "multimodal cache" not in memory_of(DENSE, *words, dataParallelSize=engines)


def test_a_multimodal_cache_in_shared_memory_enlarges_it() -> None:
    one = resource(IMAGES, engine={"extraArgs": ["--mm-processor-cache-type", "shm"]})
    _, budget, _ = plan_sizes(one)
    memory = {line.what: line.bytes for line in budget.memory}
    assert (memory["multimodal cache"], memory["multimodal cache in /dev/shm"]) == (4 * GIB, 4 * GIB)
    assert budget.shm_bytes == 5 * GIB


@pytest.mark.parametrize(("asked", "taken_bytes"), [("1e10", 10_000_000_000), ("1M", 1 << 20), ("true", 0)])
def test_what_an_encoders_cache_takes_is_read_as_a_whole_number(asked: str, taken_bytes: int) -> None:
    words = [f"--ec-transfer-config.ec_connector_extra_config.ec_cpu_bytes={asked}"]
    _, budget, _ = plan_sizes(resource(DENSE, engine={"extraArgs": words}))
    assert budget.needed_shm_bytes == taken_bytes


def test_an_arena_of_tensors_is_in_shared_memory_of_several_ranks() -> None:
    words = ["--enable-shm-tensor-arena", "--ec-transfer-config.ec_connector_extra_config.ec_cpu_bytes=1024"]
    for ranks, shm_bytes in ((1, GIB + 1024), (2, 3 * GIB + 1024)):
        _, budget, _ = plan_sizes(resource(DENSE, engine={"extraArgs": words, "tensorParallelSize": ranks}))
        assert budget.shm_bytes == shm_bytes


@pytest.mark.parametrize(
    ("words", "moved_bytes"),
    [
        (("--cpu-offload-gb", "10"), 2 * 2 * 10 * GIB),
        (("--cpu-offload-gb", "100"), 2 * DENSE_BYTES),  # no more than there is
        (("--offload-group-size=8", "--offload-num-in-group=2"), 2 * DENSE_BYTES // 4),
        (("--offload-backend=uva", "--cpu-offload-gb=30", "--offload-group-size=8"), 2 * 2 * 30 * GIB),
        (("--offload-backend=prefetch", "--cpu-offload-gb=30", "--offload-group-size=8"), DENSE_BYTES // 4),
        (("--cpu-offload-gb=1e300",), 2 * DENSE_BYTES),
    ],
)
def test_weights_that_stay_in_memory_are_page_locked(words: tuple[str, ...], moved_bytes: int) -> None:
    memory = memory_of(DENSE, *words, tensorParallelSize=2)
    assert memory["weights moved to memory"] == pytest.approx(moved_bytes, rel=1e-9)


def test_each_api_server_takes_its_own() -> None:
    assert memory_of(DENSE, "-asc", "8")["vLLM front ends"] == 8 * GIB


def test_tokens_of_many_long_sequences_are_page_locked() -> None:
    words = ("--max-num-seqs", "1024")
    long = memory_of(DENSE, *words, maxModelLen=1_048_576, tensorParallelSize=2)
    assert long["tokens of sequences"] == 2 * 3 * GIB  # beyond the allowance of a process
    replayed = memory_of(DENSE, *words, "--enable-trace-replay", maxModelLen=1_048_576)
    assert replayed["tokens of sequences"] == 7 * GIB
    assert "tokens of sequences" not in memory_of(DENSE, *words, maxModelLen=131_072)


@pytest.mark.parametrize(
    ("engine", "sequences"),
    [
        ({}, 1024),
        ({"gpuMemory": "24Gi"}, 256),
        ({"gpuMemory": "24Gi", "extraArgs": ["--performance-mode=throughput"]}, 512),
        ({"device": "cpu", "tensorParallelSize": 2}, 256),
        ({"extraArgs": ["--max-num-seqs=7"]}, 7),
    ],
)
def test_sequences_of_a_batch_by_default(engine: dict[str, Any], sequences: int) -> None:
    assert sequences_of(resource(engine=engine).spec.engine) == sequences


def test_what_the_resource_asks_for_stands() -> None:
    memory = memory_of(DENSE, "--enable-sleep-mode", *STREAMED, resources={"limits": {"memory": "20Gi"}})
    assert memory["engine working set"] == 20 * GIB
    assert not {"weights while asleep", "buffers while loading"} & memory.keys()
