"""How many blocks an attached engine keeps together: what the planner would have chosen."""

from types import SimpleNamespace

import pytest

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize(
    ("block_tokens", "dcp", "interval_tokens", "blocks"),
    [(16, 1, 0, 4), (16, 2, 0, 2), (64, 1, None, 1), (144, 1, 0, 1), (16, 1, 128, 4), (16, 1, 32, 1)],
)
def test_a_gpu_s_chunk_has_64_tokens_where_vllm_takes_that(
    monkeypatch: pytest.MonkeyPatch, block_tokens: int, dcp: int, interval_tokens: int | None, blocks: int
) -> None:
    from kvtier_connector.vllm.offloading import start  # noqa: PLC0415 - takes seconds

    kv_cache = SimpleNamespace(
        kv_cache_groups=[SimpleNamespace(kv_cache_spec=SimpleNamespace(block_size=block_tokens))]
    )
    config = SimpleNamespace(
        parallel_config=SimpleNamespace(decode_context_parallel_size=dcp),
        cache_config=SimpleNamespace(prefix_cache_retention_interval=interval_tokens),
    )
    assert start.choose_blocks_per_chunk(kv_cache, config) == 1, "this is a CPU"
    monkeypatch.setattr(start, "current_platform", SimpleNamespace(is_cpu=lambda: False))
    assert start.choose_blocks_per_chunk(kv_cache, config) == blocks


def test_a_state_is_kept_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    from vllm.v1.kv_cache_interface import MambaSpec  # noqa: PLC0415 - takes seconds

    from kvtier_connector.vllm.offloading import start  # noqa: PLC0415 - as above

    monkeypatch.setattr(start, "current_platform", SimpleNamespace(is_cpu=lambda: False))
    specs = [SimpleNamespace(block_size=16), object.__new__(MambaSpec)]
    kv_cache = SimpleNamespace(kv_cache_groups=[SimpleNamespace(kv_cache_spec=spec) for spec in specs])
    assert start.choose_blocks_per_chunk(kv_cache, SimpleNamespace()) == 1
